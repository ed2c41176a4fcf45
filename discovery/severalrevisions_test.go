package discovery_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/schema"
)

// TestSeveralRevisionsInOnePublication checks that a proxy which has not acked a publication runs
// none of its revisions, and not only the last one: whatever it brings to the proxy.
func TestSeveralRevisionsInOnePublication(t *testing.T) {
	for name, next := range map[string]func(t testing.TB) []*schema.Object{
		"other routes": func(t testing.TB) []*schema.Object {
			return []*schema.Object{service(t, "web.example", "10.1.0.1"), timeout(t, "web.example", 2)}
		},
		"other endpoints": func(t testing.TB) []*schema.Object {
			return []*schema.Object{service(t, "web.example", "10.1.0.2"), timeout(t, "web.example", 1)}
		},
		"both": func(t testing.TB) []*schema.Object {
			return []*schema.Object{service(t, "web.example", "10.1.0.2"), timeout(t, "web.example", 2)}
		},
		"another view": func(t testing.TB) []*schema.Object {
			return []*schema.Object{service(t, "web.example", "10.9.0.1"), timeout(t, "web.example", 2)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := newObjects(service(t, "web.example", "10.1.0.1"), timeout(t, "web.example", 1))
				s := follow(t, src, discovery.Options{})
				p, err := simulated.Connect(s, simulated.Node(0))
				if err != nil {
					t.Fatal(err)
				}
				defer p.Leave()
				synctest.Wait()
				p.Hold()
				src.goOn(4) // Discovery does not look before the next one.
				src.set(next(t)...)
				time.Sleep(time.Second)
				synctest.Wait()
				all := s.ObjectStatuses(nil)
				for _, o := range all.Objects {
					for revision := int64(2); revision <= 5; revision++ {
						if of := all.Of(o.Key().Ref(), revision); of.Proxies != 1 || of.Running != 0 {
							t.Errorf("%s at revision %d: %d of %d run it, and none has acked it", o.Key(), revision, of.Running, of.Proxies)
						}
					}
				}
				if shown := s.Proxies()[0].Revision; shown != 1 {
					t.Errorf("the proxy is shown with revision %d, want 1", shown)
				}
				p.Accept()
				synctest.Wait()
				if shown := s.Proxies()[0].Revision; shown != 5 {
					t.Errorf("the proxy is shown with revision %d after its ack, want 5", shown)
				}
			})
		})
	}
}

// TestSettingsOfConnectionsAreRefusedWithTheirListener checks that a DestinationRule which
// changes a TCP listener does not count as run by a proxy that refuses the listener.
func TestSettingsOfConnectionsAreRefusedWithTheirListener(t *testing.T) {
	for name, policy := range map[string]string{
		"idle":         `{"connectionPool":{"tcp":{"idleTimeout":"7s"}}}`,
		"old":          `{"connectionPool":{"tcp":{"maxConnectionDuration":"7s"}}}`,
		"hashed":       `{"loadBalancer":{"consistentHash":{"useSourceIp":true}}}`,
		"of each port": `{"portLevelSettings":[{"port":{"number":9000},"connectionPool":{"tcp":{"idleTimeout":"7s"}}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := object(t, "ServiceEntry", "db", `{"hosts":["db.example"],"addresses":["10.0.0.9"],"location":"MESH_INTERNAL","resolution":"STATIC",
					"ports":[{"number":9000,"name":"tcp","protocol":"TCP"}],"endpoints":[{"address":"10.1.0.9"}]}`)
				src := newObjects(db)
				s := follow(t, src, discovery.Options{})
				p, err := simulated.Connect(s, simulated.Node(0))
				if err != nil {
					t.Fatal(err)
				}
				defer p.Leave()
				synctest.Wait()
				p.RefuseContaining(discovery.ListenerType, "10.0.0.9", "no such listener")
				rule := object(t, "DestinationRule", "db", `{"host":"db.example","trafficPolicy":`+policy+`}`)
				src.set(db, rule)
				time.Sleep(time.Second)
				synctest.Wait()
				of := s.ObjectStatuses(nil).Of(rule.Key().Ref(), src.revision)
				if of.Proxies != 1 || of.Running != 0 || len(of.Refusals) != 1 {
					t.Errorf("%d of %d run it, refused: %+v", of.Running, of.Proxies, of.Refusals)
				}
			})
		})
	}
}
