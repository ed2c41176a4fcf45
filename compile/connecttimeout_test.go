package compile_test

import (
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/compile"
	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestConnectTimeout: a policy says how long, else the mesh settings, and where
// neither does each API has its own default. What is said counts, be it equal to
// a default.
func TestConnectTimeout(t *testing.T) {
	for _, test := range []struct {
		settings, policy string
		v1, v3           time.Duration
	}{
		{"", "", time.Second, 10 * time.Second},
		{"connectTimeout: 1s", "", time.Second, time.Second},
		{"connectTimeout: 10s", "", 10 * time.Second, 10 * time.Second},
		{"", "2s", 2 * time.Second, 2 * time.Second},
		{"connectTimeout: 1s", "2s", 2 * time.Second, 2 * time.Second},
	} {
		settings, problems := mesh.ParseSettings([]byte(test.settings), "mesh.yaml")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		objects := []*schema.Object{hostIn(t, "default", "reviews")}
		if test.policy != "" {
			objects = append(objects, object(t, "DestinationRule", "reviews", spec{"host": "reviews", "trafficPolicy": spec{
				"connectionPool": spec{"tcp": spec{"connectTimeout": test.policy}}}}))
		}
		snapshot := mesh.NewSnapshot(1, settings, objects)
		config, _ := compile.Proxy(snapshot, snapshot.TraitsOf(proxy(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local")))
		config.Clusters = outboundClusters(config)[:1]
		old, _ := v1.Clusters(config)
		if got := time.Duration(old.Clusters[0].ConnectTimeoutMS) * time.Millisecond; got != test.v1 {
			t.Errorf("%+v: v1 waits %s", test, got)
		}
		young, _ := v3.Clusters(config)
		if got := young[0].GetConnectTimeout().AsDuration(); got != test.v3 {
			t.Errorf("%+v: v3 waits %s", test, got)
		}
	}
}
