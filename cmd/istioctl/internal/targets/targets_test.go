package targets

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSelection(t *testing.T) {
	cases := []struct {
		args string
		want string // "kinds: targets", or "error: part of it"
	}{
		{"routerules", "RouteRule:"},
		{"rr,dp,routerule", "RouteRule DestinationPolicy:"},
		{"all", "DestinationPolicy EgressRule IngressRule RouteRule DestinationRule Gateway ServiceEntry Sidecar VirtualService WorkloadEntry Secret AuthorizationPolicy PeerAuthentication RequestAuthentication:"},
		{"RouteRule a b", "RouteRule: RouteRule/a RouteRule/b"},
		{"rr,dp a", "RouteRule DestinationPolicy: RouteRule/a DestinationPolicy/a"},
		{"rr/a rr/b dp/a", "RouteRule DestinationPolicy: RouteRule/a RouteRule/b DestinationPolicy/a"},
		{"", "error: say which kind"},
		{"rr/a b", "error: either KIND NAME… or KIND/NAME…"},
		{"rr a/b", "error: either KIND NAME… or KIND/NAME…"},
		{"rr/", "error: either KIND NAME… or KIND/NAME…"},
		{"rotuerule", "error: did you mean routerule?"},
		{"rr,", "error: there is no kind"},
		{"pods/x", "error: there are destinationpolicy, "},
	}
	for _, tc := range cases {
		sel, err := Parse(strings.Fields(tc.args))
		if part, wantErr := strings.CutPrefix(tc.want, "error: "); wantErr {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: error %v, want one with %q", tc.args, err, part)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tc.args, err)
			continue
		}
		if diff := cmp.Diff(tc.want, sel.text()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.args, diff)
		}
	}
}

func (s Selection) text() string {
	var kinds []string
	for _, k := range s.Kinds {
		kinds = append(kinds, k.Kind)
	}
	text := strings.Join(kinds, " ") + ":"
	for _, t := range s.Targets {
		text += " " + t.Kind.Kind + "/" + t.Name
	}
	return text
}
