package ads_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/server/ads"
)

// TestAFloodOfRequestsIsPaced: the server takes a burst of a client's requests, and then
// no more a second than an Envoy needs. Others do not wait.
func TestAFloodOfRequestsIsPaced(t *testing.T) {
	const burst, perSecond, more = 2000, 200, 2000
	synctest.Test(t, func(t *testing.T) {
		src := newSource(service("web.example", 80, 1, "a"))
		s := serveAs(t, ads.Options{}, src)
		honest := newEnvoy(s.connect(delta, nodeA)).start()
		flooding := s.connect(delta, nodeB)
		began := time.Now()
		flooded := make(chan struct{})
		go func() {
			defer close(flooded)
			for range burst + more {
				flooding.subscribe(rds, "none")
			}
			flooding.subscribe(cds)
		}()
		time.Sleep(time.Second)
		src.publish(service("other.example", 80, 2, "a"))
		honest.play()
		if _, told := honest.versions(cds)["out.other.example|http"]; !told || time.Since(began) > 5*time.Second {
			t.Errorf("after %v the other proxy has clusters %v", time.Since(began), honest.versions(cds))
		}
		<-flooded
		for told := false; !told; time.Sleep(time.Second) {
			for _, r := range flooding.told() {
				told = told || r.typeURL == cds
			}
		}
		if took := time.Since(began); took < more/perSecond*time.Second {
			t.Errorf("%d requests were taken in %v", burst+more, took)
		}
	})
}
