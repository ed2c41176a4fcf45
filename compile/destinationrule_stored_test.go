package compile_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// TestDestinationRuleOfAnotherVersion: a rule that this version cannot decode closes its
// host, so that nothing goes out in plain text that was to be encrypted.
func TestDestinationRuleOfAnotherVersion(t *testing.T) {
	service := objects(t, `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: shop}
spec:
  hosts: [shop.example]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.7}]
`)
	kind, _ := schema.KindByName("DestinationRule")
	for spec, closed := range map[string]bool{
		`{"host":"shop.example"}`: false,
		`{"host":"shop.example","trafficPolicy":{"tls":{"mode":"HYBRID"}}}`:                                                           true,
		`{"host":"shop.example","trafficPolicy":{"tls":7}}`:                                                                           true,
		`{"host":"shop.example","exportTo":["elsewhere"],"trafficPolicy":{"tls":7}}`:                                                  false,
		`{"host":"other.example","trafficPolicy":{"tls":{"mode":"HYBRID"}}}`:                                                          false,
		`{"host":"*.example","trafficPolicy":{"tls":{"mode":"HYBRID"}}}`:                                                              true,
		`{"host":"shop.example","trafficPolicy":{"tls":{"mode":"SIMPLE","pins":["x"]}}}`:                                              true,
		`{"host":"shop.example","trafficPolicy":{"portLevelSettings":[{"port":{"number":80},"tls":{"mode":"SIMPLE","pins":["x"]}}]}}`: true,
		`{"host":"shop.example","subsets":[{"name":"v1","trafficPolicy":{"tls":{"pins":["x"]}}}]}`:                                    true,
		`{"host":"shop.example","trafficPolicy":{"patience":"3s"}}`:                                                                   false,
	} {
		rule, err := schema.New(kind, metav1.ObjectMeta{Namespace: "default", Name: "shop"}, json.RawMessage(spec))
		if err != nil {
			t.Fatal(err)
		}
		config, problems := compiled(t, "sidecar~10.1.0.9~web.default~default.svc.cluster.local", append(service[:len(service):len(service)], rule))
		found := 0
		for _, c := range config.Clusters {
			if strings.Contains(c.Name, "shop.example") {
				found++
				if (c.EndpointKey == ir.Nobody) != closed {
					t.Errorf("%s: the cluster is %+v, want it closed: %v", spec, c, closed)
				}
			}
		}
		if found == 0 || closed && len(problems) == 0 {
			t.Errorf("%s: %d clusters and %v", spec, found, problems)
		}
	}
}
