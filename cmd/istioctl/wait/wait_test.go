package wait

import (
	"bytes"
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// settled is a server that has the same status for each object.
type settled struct {
	Statuses
	status string
}

func (s settled) GetWithFreshStatus(_ context.Context, key schema.Key, _ store.ReadOptions) (client.ObjectWithStatus, error) {
	return client.ObjectWithStatus{
		Object: &schema.Object{Meta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: "7"}},
		Raw:    []byte(s.status),
	}, nil
}

// TestRun: an object that has the condition, or cannot have it, ends the wait at once.
func TestRun(t *testing.T) {
	for name, c := range map[string]struct{ status, said, failed string }{
		"accepted": {`{"conditions":[{"type":"Accepted","status":"True"}]}`, "routerule/one accepted\n", ""},
		"refused": {
			`{"conditions":[{"type":"Accepted","status":"False","reason":"Rejected","message":"no such\nhost"}]}`, "",
			"routerule/one is not accepted: no such host",
		},
		"refused, with a missing reference": {
			`{"conditions":[{"type":"Accepted","status":"False","reason":"RouteRuleHidden","message":"hidden"},` +
				`{"type":"ResolvedRefs","status":"False","reason":"NoInstances","message":"no instance"}]}`, "",
			"routerule/one is not accepted: hidden; it also names what is not there: no instance",
		},
		"no proxies": {``, "", "routerule/one has no status"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			s := &cli.Session{Program: &cli.Program{Stdout: &out, Stderr: &errs}, Namespace: "books"}
			flags := Options{
				Connect: func(func(string)) (Statuses, error) { return settled{status: c.status}, nil },
				goal:    "accepted", timeout: waitTimeout,
			}
			err := flags.Run(t.Context(), s, []string{"rr/one"})
			if out.String() != c.said || errs.Len() > 0 {
				t.Errorf("says %q and %q, want %q", &out, &errs, c.said)
			}
			if (err != nil) != (c.failed != "") || err != nil && !strings.Contains(err.Error(), c.failed) {
				t.Errorf("error %v, want %q", err, c.failed)
			}
		})
	}
}
