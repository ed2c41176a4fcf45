package e2e

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/pilot-api/pilot-api/internal/v1schema"
)

// The rows of the demo, asserted; and what an Envoy of the first API would have
// been told under each rule is what such an Envoy takes.
func TestRows(t *testing.T) {
	w := open(t)
	for _, row := range Rows {
		t.Run(row.Title(), func(t *testing.T) {
			err := w.Under(t.Context(), row.Rule, func() error {
				validateV1(t, w)
				v, err := w.Try(t.Context(), row)
				if v.Wrong != "" {
					t.Errorf("%s: should be %s, but %s", v.Did, row.Should, v.Wrong)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// validateV1 asks, as that Envoy would, for its listeners and clusters and for
// whatever routes and endpoints those name.
func validateV1(t *testing.T, w *World) {
	t.Helper()
	get := func(schema string, path ...string) []byte {
		t.Helper()
		for i := range path {
			path[i] = url.PathEscape(path[i])
		}
		at, err := url.JoinPath(w.Pilot.URL+"/v1", path...)
		if err != nil {
			t.Fatal(err)
		}
		body, err := fetch(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		v1schema.Validate(t, schema, body)
		return body
	}
	tables := named(t, get("lds-response", "listeners", "e2e", w.Sidecar.Node), "rds", "route_config_name")
	services := named(t, get("cds-response", "clusters", "e2e", w.Sidecar.Node), "", "service_name")
	if len(tables) == 0 || len(services) == 0 {
		t.Fatalf("v1 answers name %d route tables and %d services, want some of each", len(tables), len(services))
	}
	for _, table := range tables {
		get("rds-response", "routes", table, "e2e", w.Sidecar.Node)
	}
	for _, service := range services {
		get("sds-response", "registration", service)
	}
}

// named collects the texts of a member wherever it is in the body; if inside
// is not empty, only in objects that are the value of that member.
func named(t *testing.T, body []byte, inside, member string) []string {
	t.Helper()
	var found []string
	var walk func(value any, parent string)
	walk = func(value any, parent string) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				walk(item, parent)
			}
		case map[string]any:
			if name, ok := v[member].(string); ok && (inside == "" || inside == parent) {
				found = append(found, name)
			}
			for key, item := range v {
				walk(item, key)
			}
		}
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	walk(value, "")
	return found
}
