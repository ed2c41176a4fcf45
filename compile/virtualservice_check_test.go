package compile_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
)

// TestOnlyForSomeCallers: that others go past a list of callers is told, unless a
// route is for them.
func TestOnlyForSomeCallers(t *testing.T) {
	trusted := spec{"match": []spec{{"sourceLabels": spec{"app": "trusted"}}}, "directResponse": spec{"status": 200}}
	refused := spec{"directResponse": spec{"status": 403}}
	for _, test := range []struct {
		name string
		spec spec
		told bool
	}{
		{"only for some", spec{"http": []spec{trusted}}, true},
		{"for a namespace", spec{"http": []spec{{"match": []spec{{"sourceNamespace": "team"}}, "directResponse": spec{"status": 200}}}}, true},
		{"others at the gateway", spec{"gateways": []string{"mesh", "g"}, "http": []spec{trusted, {"match": []spec{{"gateways": []string{"g"}}}, "directResponse": spec{"status": 403}}}}, true},
		{"others are refused", spec{"http": []spec{trusted, refused}}, false},
		{"for all", spec{"http": []spec{refused}}, false},
		{"at gateways", spec{"gateways": []string{"g"}, "http": []spec{trusted}}, false},
	} {
		test.spec["hosts"] = []string{"ratings.default.svc.cluster.local"}
		_, problems := compiled(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local", []*schema.Object{
			hostIn(t, "default", "ratings"), object(t, "VirtualService", "v", test.spec),
		})
		told := false
		for _, p := range problems {
			told = told || strings.Contains(p.Message, "are not refused")
		}
		if told != test.told {
			t.Errorf("%s: %v", test.name, problems)
		}
	}
}
