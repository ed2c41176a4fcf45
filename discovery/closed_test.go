package discovery_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
)

// TestRefusedClusterIsClosed: what no Envoy takes leaves nothing open, neither
// without the TLS that is asked nor as it was before, and every replica says the
// same.
func TestRefusedClusterIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		p := newPoller(t, follow(t, src, discovery.Options{}))
		if open := string(p.ask(discovery.ClusterType).Body); !strings.Contains(open, `"type":"EDS"`) {
			t.Fatalf("clusters before: %s", open)
		}
		src.set(web, object(t, "DestinationRule", "tls",
			`{"host":"web.example","trafficPolicy":{"tls":{"mode":"SIMPLE","sni":"`+strings.Repeat("a", 256)+`"}}}`))
		var closed discovery.Answer
		// Step by step: routes leave the open cluster first.
		for range 10 {
			time.Sleep(time.Second)
			closed = p.ask(discovery.ClusterType)
			p.ask(discovery.ListenerType)
			p.ask(discovery.RouteType, "80")
		}
		if body := string(closed.Body); !strings.Contains(body, `"out.web.example|http`) || strings.Contains(body, `"type":"EDS"`) {
			t.Errorf("clusters after: %s", body)
		}
		var told []string
		for _, problem := range p.s.Report().Problems {
			if problem.Object.Name == "tls" || strings.Contains(problem.Message, "is closed") {
				told = append(told, problem.String())
			}
		}
		if routes := string(p.ask(discovery.RouteType, "80").Body); strings.Contains(routes, `"cluster":"out.web.example|http"`) {
			t.Errorf("routes lead to the open cluster: %s", routes)
		}
		if len(told) == 0 {
			t.Error("nobody is told")
		}
		if replica := newPoller(t, follow(t, src, discovery.Options{})).ask(discovery.ClusterType); replica.Version != closed.Version {
			t.Errorf("another replica says %s, not %s", replica.Body, closed.Body)
		}
	})
}
