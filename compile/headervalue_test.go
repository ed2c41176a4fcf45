package compile_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestHeaderValuesPastValidation: a value that proxies would refuse, with the
// whole table, closes its route.
func TestHeaderValuesPastValidation(t *testing.T) {
	for value, name := range map[string]string{"50%": "x", "%USER%": "x", "%ENVIRONMENT(TOKEN)%": "x", "%REQ(x)%": "Host"} {
		headers := spec{"request": spec{"add": spec{name: value}}}
		for at, route := range map[string]spec{
			"headers":          {"headers": headers, "route": []spec{{"destination": spec{"host": "a"}}}},
			"route[0].headers": {"route": []spec{{"destination": spec{"host": "a"}, "headers": headers}}},
			"answer":           {"headers": headers, "directResponse": spec{"status": 200}},
		} {
			vs := object(t, "VirtualService", "reviews", spec{"hosts": []string{"reviews"}, "http": []spec{route}})
			config, problems := compiledAs(t, mesh.V1Compatibility{}, "sidecar~10.99.0.1~caller~default.svc.cluster.local",
				[]*schema.Object{hostIn(t, "default", "reviews"), vs})
			first := routeTo(t, config, reviewsHost)
			if first.Response == nil || first.Response.Status != 503 {
				t.Errorf("%s, %s: %+v, want a closed route", value, at, first)
			}
			if text := problems.Error(); !strings.Contains(text, "headers.request.add["+name+"]: the route answers 503") {
				t.Errorf("%s, %s: problems\n%s", value, at, text)
			}
		}
	}
}
