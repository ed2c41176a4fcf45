package schema

import (
	"fmt"
	"strings"
	"testing"
)

// TestUnknownWordsOfRoles: a typing error in a role is told, and words of other servers are
// not taken for one.
func TestUnknownWordsOfRoles(t *testing.T) {
	for rule, want := range map[string][]string{
		`{"apiGroups":["networking.istio.io"],"resources":["gateways","gateways/status","virtualservices/history"],"verbs":["get","attach"]}`: nil,
		`{"apiGroups":["networking.istio.io"],"resources":["*"],"verbs":["*"]}`:                                                               nil,
		`{"apiGroups":["networking.istio.io","config.istio.io"],"resources":["routerules","gateways"],"verbs":["get"]}`:                       nil,
		`{"apiGroups":["registry.istio.io"],"resources":["secrets","problems","proxies/config","proxies/labels"],"verbs":["get","claim"]}`:    nil,
		`{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["bind","escalate"]}`:                                       nil,
		`{"apiGroups":["apps"],"resources":["deployments"],"verbs":["scale"]}`:                                                                nil,
		`{"apiGroups":["*"],"resources":["nothing"],"verbs":["get"]}`:                                                                         nil,
		`{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}`:                                                                             nil,
		`{"apiGroups":["networking.istio.io"],"resources":["servicentries"],"verbs":["gett"]}`:                                                {`no verb "gett"; did you mean get?`, `networking.istio.io has no resource "servicentries"; did you mean serviceentries?`},
		`{"apiGroups":["config.istio.io"],"resources":["gateways"],"verbs":["get"]}`:                                                          {`config.istio.io has no resource "gateways"`},
	} {
		o, list := Decode([]byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","namespace":"n"},"rules":[`+rule+`]}`), Options{})
		if o == nil {
			t.Fatalf("%s: %v", rule, list)
		}
		if len(list) != len(want) {
			t.Errorf("%s: %v, want %d warnings", rule, list, len(want))
			continue
		}
		for _, text := range want {
			if !strings.Contains(fmt.Sprint(list), text) {
				t.Errorf("%s: %v, want %s", rule, list, text)
			}
		}
	}
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("%q", strings.Repeat("x", 60)+fmt.Sprint(i))
	}
	if o, list := Decode([]byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","namespace":"n"},"rules":[{"apiGroups":["config.istio.io"],"verbs":["get"],"resources":[`+strings.Join(many, ",")+`]}]}`), Options{}); o == nil && list.Err() == nil || len(list) > 101 {
		t.Errorf("%v and %d problems of 5000 unknown resources", o != nil, len(list))
	}
}
