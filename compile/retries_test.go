package compile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		{"unset", mesh.V1Compatibility{}, route(nil), &ir.Retry{On: safe, Attempts: 2, OtherHosts: ir.UntriedUnlessHashed}},
		{"none", mesh.V1Compatibility{}, route(spec{"attempts": 0}), nil},
		{"three", mesh.V1Compatibility{}, route(spec{"attempts": 3}), &ir.Retry{On: safe, Attempts: 3, OtherHosts: ir.UntriedUnlessHashed}},
		{"unset, as Pilot", mesh.AsPilot(), route(nil), nil},
		{"three, as Pilot", mesh.AsPilot(), route(spec{"attempts": 3}), &ir.Retry{Attempts: 3}},
		{"on conditions", mesh.V1Compatibility{}, route(spec{"attempts": 3, "retryOn": "5xx,reset"}), &ir.Retry{On: "5xx,reset", Attempts: 3, OtherHosts: ir.UntriedUnlessHashed}},
		{"on codes", mesh.V1Compatibility{}, route(spec{"attempts": 3, "retryOn": "429,reset,503"}),
			&ir.Retry{On: "reset,retriable-status-codes", StatusCodes: []int{429, 503}, Attempts: 3, OtherHosts: ir.UntriedUnlessHashed}},
		{"anywhere", mesh.V1Compatibility{}, route(spec{"attempts": 3, "retryIgnorePreviousHosts": false, "retryRemoteLocalities": true, "backoff": "0.1s"}),
			&ir.Retry{On: safe, Attempts: 3, OtherLocalities: true, BackOff: 100 * time.Millisecond}},
		{"on conditions, as Pilot", mesh.AsPilot(), route(spec{"attempts": 1, "retryOn": "reset"}), &ir.Retry{On: "reset", Attempts: 1}},
		{"by a RouteRule", mesh.V1Compatibility{}, rule, &ir.Retry{Attempts: 3}},
	} {
		config, _ := compiledAs(t, test.pilot, "sidecar~10.99.0.1~caller~default.svc.cluster.local", []*schema.Object{hostIn(t, "default", "reviews"), test.rule})
		got := routeTo(t, config, reviewsHost).Retry
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, d)
		}
	}
}
