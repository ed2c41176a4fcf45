package compile_test

import (
	"testing"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestRetriesByDefault: what a service may have acted on is not repeated, and a
// RouteRule means what it did under Pilot.
func TestRetriesByDefault(t *testing.T) {
	const safe = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
	route := func(retries spec) *schema.Object {
		r := spec{"route": []spec{{"destination": spec{"host": "reviews"}}}}
		if retries != nil {
			r["retries"] = retries
		}
		return object(t, "VirtualService", "reviews", spec{"hosts": []string{"reviews"}, "http": []spec{r}})
	}
	rule := object(t, "RouteRule", "reviews", spec{
		"destination": spec{"name": "reviews"}, "httpReqRetries": spec{"simpleRetry": spec{"attempts": 3}},
	})
	for _, test := range []struct {
		name  string
		pilot mesh.V1Compatibility
		rule  *schema.Object
		want  *ir.Retry
	}{
		{"unset", mesh.V1Compatibility{}, route(nil), &ir.Retry{On: safe, Attempts: 2}},
		{"none", mesh.V1Compatibility{}, route(spec{"attempts": 0}), nil},
		{"three", mesh.V1Compatibility{}, route(spec{"attempts": 3}), &ir.Retry{On: safe, Attempts: 3}},
		{"unset, as Pilot", mesh.AsPilot(), route(nil), nil},
		{"three, as Pilot", mesh.AsPilot(), route(spec{"attempts": 3}), &ir.Retry{Attempts: 3}},
		{"by a RouteRule", mesh.V1Compatibility{}, rule, &ir.Retry{Attempts: 3}},
	} {
		config, _ := compiledAs(t, test.pilot, "sidecar~10.99.0.1~caller~default.svc.cluster.local", []*schema.Object{hostIn(t, "default", "reviews"), test.rule})
		got := routeTo(t, config, reviewsHost).Retry
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
