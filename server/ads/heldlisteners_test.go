package ads_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
)

// database returns a TCP service of two versions, whose subset b has so many connections.
func database(connections int) []*schema.Object {
	return []*schema.Object{
		object("ServiceEntry", "db", `{"hosts":["db.example"],"addresses":["10.50.0.1"],"location":"MESH_INTERNAL","resolution":"STATIC",
			"ports":[{"number":3306,"name":"tcp","protocol":"TCP"}],
			"endpoints":[{"address":"10.0.7.1","labels":{"version":"a"}},{"address":"10.0.7.2","labels":{"version":"b"}}]}`),
		object("DestinationRule", "db", fmt.Sprintf(`{"host":"db.example","subsets":[{"name":"a","labels":{"version":"a"}},
			{"name":"b","labels":{"version":"b"},"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":%d}}}}]}`, connections)),
	}
}

// toDatabase sends connections to a subset of the database.
func toDatabase(subset string) *schema.Object {
	return object("VirtualService", "db", fmt.Sprintf(`{"hosts":["db.example"],"tcp":[{"route":[{"destination":{"host":"db.example","subset":%q}}]}]}`, subset))
}

func databaseCluster(subset string) string {
	if subset == "" {
		return "out.db.example|tcp"
	}
	return "out.db.example|tcp|version=" + subset + "|" + subset
}

// connectsTo returns the clusters to which the listeners send TCP connections.
func (e *envoy) connectsTo() (all []string) {
	for _, a := range e.has[lds] {
		for _, c := range leadsTo(a) {
			if c != "" && c[:4] == "out." {
				all = append(all, c)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (e *envoy) wantConnects(to string) {
	e.t.Helper()
	if got := e.connectsTo(); !slices.Equal(got, []string{to}) || e.has[cds][to] == nil && !e.never[to] {
		e.t.Fatalf("TCP connections go to %v, want %s; the clusters are %v", got, to, e.referred(eds))
	}
}

// TestListenerToARefusedClusterStaysAsItWas checks that a TCP rule whose new cluster the proxy
// refuses changes nothing until the proxy takes the cluster, that everything else moves on,
// and that a rule which leads elsewhere takes effect at once.
func TestListenerToARefusedClusterStaysAsItWas(t *testing.T) {
	for name, before := range map[string]string{"a changed rule": "a", "a new rule": ""} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, kind variant) {
				src := newSource(append(database(badPool), service("api.example", 80, 2, "a"), timeout("api.example", 1))...)
				if before != "" {
					src.put(toDatabase(before))
				}
				s := serve(t, src)
				e := newEnvoy(s.connect(kind, nodeA)).start()
				e.refusing(cds, "Error adding/updating cluster(s) "+databaseCluster("b")+": it is bad.", isBad)
				e.wantConnects(databaseCluster(before))

				src.publish(toDatabase("b"), timeout("api.example", 2))
				e.play()
				e.wantConnects(databaseCluster(before))
				e.wantTimeouts(map[string]string{"api.example": "2s"})
				wantBlame(t, s, "db", "db", "db")
				wantRunning(t, s, map[*schema.Object]bool{toDatabase("b"): false, timeout("api.example", 2): true})

				src.publish(timeout("api.example", 3), service("more.example", 81, 3, "a"))
				e.play()
				e.wantConnects(databaseCluster(before))
				wantRunning(t, s, map[*schema.Object]bool{toDatabase("b"): false, timeout("api.example", 3): true, service("more.example", 81, 3, "a"): true})

				src.publish(database(2)...)
				e.play()
				e.wantConnects(databaseCluster("b"))
				wantBlame(t, s)
				wantRunning(t, s, map[*schema.Object]bool{toDatabase("b"): true})

				src.publish(database(badPool)...)
				e.play()
				e.wantConnects(databaseCluster("b")) // It goes on with what it has of the cluster.
				src.publish(toDatabase("a"))
				e.play()
				e.wantConnects(databaseCluster("a"))
				wantBlame(t, s)
			})
		})
	}
}

// TestListenerToARefusedClusterWithNothingBefore checks that a new listener closes the
// connections to a refused cluster, and does not leave them to the listener for everything
// else.
func TestListenerToARefusedClusterWithNothingBefore(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src := newSource(service("api.example", 80, 2, "a"))
		s := serve(t, src)
		e := newEnvoy(s.connect(kind, nodeA)).start()
		e.refusing(cds, "Error adding/updating cluster(s) "+databaseCluster("b")+": it is bad.", isBad)
		src.publish(append(database(badPool), toDatabase("b"))...)
		e.play()
		e.wantConnects(databaseCluster("b"))
		if e.has[cds][databaseCluster("b")] != nil {
			t.Error("the proxy has the cluster that it refuses")
		}
		wantRunning(t, s, map[*schema.Object]bool{toDatabase("b"): false})
	})
}
