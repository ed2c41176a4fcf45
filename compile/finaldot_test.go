package compile

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/schema"
)

// TestFinalDotOfAuthority: a condition on a host with a final dot is one on the host
// as a proxy sees it.
func TestFinalDotOfAuthority(t *testing.T) {
	for text, want := range map[string]string{"a.b.": "a.b", "a.b.:80": "a.b:80", "a.b": "a.b", "a.b..": "a.b."} {
		virtual := virtualHeader(":authority", &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: text}})
		if virtual.Exact != want || virtual.Present {
			t.Errorf("VirtualService: %q is %+v", text, virtual)
		}
		if rule := headerMatch("authority", schema.StringMatch{Exact: &text}); rule.Exact != want {
			t.Errorf("RouteRule: %q is %+v", text, rule)
		}
	}
	other := "a."
	if rule := headerMatch("x-host", schema.StringMatch{Exact: &other}); rule.Exact != other {
		t.Errorf("another header: %+v", rule)
	}
}
