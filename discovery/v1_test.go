package discovery_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/v1schema"
	"github.com/pilot-api/pilot-api/mesh"
)

// What a v1 Envoy would refuse, its schemas refuse.
func TestV1AnswersFitTheSchemas(t *testing.T) {
	v1schema.Need(t)
	schemas := map[string]string{
		"cds": "cds-response", "lds": "lds-response", "sds": "sds-response", "sds nobody": "sds-response",
		"rds 80": "rds-response", "rds proxy": "rds-response", "rds 8123": "rds-response",
	}
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1"), timeout(t, "web.example", 5)), discovery.Options{})
		for _, node := range []string{nodeA, nodeWeb} {
			all := everything(t, s, node)
			for name, schema := range schemas {
				v1schema.Validate(t, schema, []byte(all[name]))
			}
		}
	})
}

// Tables are told to whoever asks, also without a listener that reads them.
func TestV1RoutesWithoutListener(t *testing.T) {
	const ingress = "ingress~~ingress.default~default.svc.cluster.local"
	deaf := mesh.DefaultSettings()
	deaf.ProxyListenPort = 0
	rule := object(t, "IngressRule", "rule", `{"destination":{"service":"web.example"},"destinationPort":80,
		"match":{"request":{"headers":{"authority":{"exact":"shop.example"}}}}}`)
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1"), rule), discovery.Options{Settings: deaf})
		for _, test := range []struct{ node, table, domain string }{
			{nodeA, "80", `"web.example"`},
			{nodeA, "http_proxy", `"web.example:80"`},
			{ingress, "http_proxy", `"shop.example:80"`},
		} {
			a, err := s.V1Routes(test.node, test.table)
			if err != nil || !strings.Contains(string(a.Body), test.domain) {
				t.Errorf("%s of %s: %s, %v; want %s", test.table, test.node, a.Body, err, test.domain)
			}
		}
	})
}
