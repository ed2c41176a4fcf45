package ads_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/server/ads"
)

// TestProxiesThatComeAtOnceWithMuchAreServed checks that no proxy is ended because many
// state at once what they have, as all do after a restart of the server, though all
// together state more than the server may hold.
func TestProxiesThatComeAtOnceWithMuchAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const proxies, names = 40, 10_000
		registry := prometheus.NewRegistry()
		s := serveAs(t, ads.Options{Memory: 8 << 20, Registry: registry}, newSource(service("web.example", 80, 1, "a")))
		var all []*client
		for n := range proxies {
			c := s.connect(delta, fmt.Sprintf("sidecar~10.1.0.%d~p-%d.default~default.svc.cluster.local", n+1, n))
			all = append(all, c)
			versions := map[string]string{}
			for _, name := range unknown(0, names) {
				versions[name] = "1"
			}
			go func() {
				c.say(request{typeURL: eds, initial: versions})
				c.say(request{typeURL: cds, names: []string{"*"}})
			}()
		}
		for _, c := range all {
			if told := c.told(); len(told) == 0 {
				t.Fatalf("a proxy was told nothing; its stream ended with %v", c.ended())
			}
		}
		if got := valueOf(t, registry, "pilot_stream_connections_evicted_total"); got != 0 {
			t.Errorf("%v connections were ended", got)
		}
	})
}
