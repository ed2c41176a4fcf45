package servertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const (
	Transactions = "/apis/registry.istio.io/v1/transactions"
	Rollbacks    = "/apis/registry.istio.io/v1/rollbacks"
	Changes      = "/apis/registry.istio.io/v1/changes"
)

// Transaction returns a body with operations, in JSON.
func Transaction(ops ...string) string {
	return `{"apiVersion":"registry.istio.io/v1","kind":"Transaction","spec":{"operations":[` + strings.Join(ops, ",") + `]}}`
}

// RuleOp returns an operation with a rule.
func RuleOp(verb, name string, precedence int, metadata ...string) string {
	meta := append([]string{fmt.Sprintf(`"name":%q`, name)}, metadata...)
	return fmt.Sprintf(`{"verb":%q,"object":{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{%s},
		"spec":{"destination":{"name":"reviews"},"precedence":%d,"route":[{"labels":{"version":"v1"}}]}}}`, verb, strings.Join(meta, ","), precedence)
}

func Named(verb, name, more string) string {
	return fmt.Sprintf(`{"verb":%q,"target":{"kind":"RouteRule","namespace":"default","name":%q}%s}`, verb, name, more)
}

type results struct {
	Revision, Continue string
	Remaining          int
	Results            []struct {
		Verb   string
		Object Object
	}
}

// Results returns the status of a Transaction or a Rollback.
func (a Answer) Results(t *testing.T) results {
	t.Helper()
	var out struct{ Status results }
	if err := json.Unmarshal([]byte(a.Text), &out); err != nil {
		t.Fatalf("%v in %s", err, a.Text)
	}
	return out.Status
}
