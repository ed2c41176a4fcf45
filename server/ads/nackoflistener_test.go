package ads_test

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

const nodeEdge = "router~10.9.0.3~r.default~default.svc.cluster.local"

// twoPorts returns a router with a Gateway and a VirtualService for each of two ports. It
// refuses listeners on port 8443, in the words of an Envoy that cannot bind it.
func twoPorts(t testing.TB, kind variant) (*source, *server, *envoy) {
	src := newSource(service("web.example", 80, 1, "a"), edge("open", 8080), edge("taken", 8443), through("open", 1), through("taken", 1))
	s := serve(t, src)
	e := newEnvoy(s.connect(kind, nodeEdge))
	e.refusing(lds, "Error adding/updating listener(s) http_0.0.0.0_8443: cannot bind '0.0.0.0:8443': Address already in use\n",
		func(text string) bool { return contains(text, "port_value:8443") || contains(text, "port_value: 8443") })
	return src, s, e
}

func edge(name string, port int) *schema.Object {
	return object("Gateway", name, fmt.Sprintf(`{"servers":[{"port":{"number":%d,"name":"http","protocol":"HTTP"},"hosts":["*"]}]}`, port))
}

// through sends requests at a Gateway to web.example.
func through(gateway string, seconds int) *schema.Object {
	return object("VirtualService", gateway, fmt.Sprintf(
		`{"hosts":["*"],"gateways":[%q],"http":[{"route":[{"destination":{"host":"web.example"}}],"timeout":"%ds"}]}`, gateway, seconds))
}

// statusOf returns the status of an object at the revision that is published.
func statusOf(s *server, o *schema.Object) discovery.ObjectStatus {
	all := s.publisher.ObjectStatuses(nil)
	return all.Of(diag.Ref{Kind: o.Kind.Kind, Namespace: o.Meta.Namespace, Name: o.Meta.Name}, all.Revision)
}

// wantRunning checks which objects run on the only proxy, and that exactly the others are
// blamed for what it refuses.
func wantRunning(t *testing.T, s *server, want map[*schema.Object]bool) {
	t.Helper()
	for o, runs := range want {
		got := statusOf(s, o)
		if got.Proxies != 1 || (got.Running == 1) != runs || (len(got.Refusals) == 0) != runs {
			t.Errorf("%s: %+v, want running %t", o.Key(), got, runs)
		}
	}
}

// TestNACKOfAListenerHoldsUpNobodyElse checks that a router which cannot bind one port
// runs everything of its other ports: now, after changes of them, and after more of them.
// The objects behind the port do not run, and neither do routes that the proxy does not
// ask for.
func TestNACKOfAListenerHoldsUpNobodyElse(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := twoPorts(t, kind)
		e.start()
		wantRunning(t, s, map[*schema.Object]bool{edge("open", 8080): true, through("open", 1): true, edge("taken", 8443): false, through("taken", 1): false})

		src.publish(through("open", 2))
		e.play()
		src.publish(edge("more", 8081), through("more", 1))
		e.play()
		wantRunning(t, s, map[*schema.Object]bool{
			edge("open", 8080): true, through("open", 2): true, edge("more", 8081): true, through("more", 1): true,
			edge("taken", 8443): false, through("taken", 1): false,
		})
		if p := s.publisher.Proxies()[0]; p.Revision != s.publisher.Revision() || p.Types["listeners"].State != discovery.Rejected {
			t.Errorf("the proxy is %+v, want it at revision %d with listeners rejected", p, s.publisher.Revision())
		}
		e.refuses = func(response) (string, bool) { return "", false }
		src.publish(edge("taken", 8444))
		e.play()
		wantRunning(t, s, map[*schema.Object]bool{edge("taken", 8444): true, through("taken", 1): true})
	})
}

// TestNACKOfAListenerThatChanged checks that a listener which is refused after it was
// accepted goes on as it was. Its routes move on and run, unless the server asks something
// else of connections: then its table has another name, which the old listener does not ask
// for, and the status says that the routes do not run.
func TestNACKOfAListenerThatChanged(t *testing.T) {
	for name, c := range map[string]struct {
		before, after, refused string
		runs                   bool
	}{
		"certificate": {`"serverCertificate":"/cert"`, `"serverCertificate":"/other"`, "/other", true},
		"version":     {`"serverCertificate":"/cert","minProtocolVersion":"TLSV1_2"`, `"serverCertificate":"/cert","minProtocolVersion":"TLSV1_3"`, "TLSv1_3", false},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, kind variant) {
				secure := func(settings string) *schema.Object {
					return object("Gateway", "taken", fmt.Sprintf(`{"servers":[{"port":{"number":8443,"name":"https","protocol":"HTTPS"},"hosts":["*"],
						"tls":{"mode":"SIMPLE",%s,"privateKey":"/key"}}]}`, settings))
				}
				src, s, e := twoPorts(t, kind)
				src.publish(secure(c.before))
				e.refusing(lds, "Error adding/updating listener(s) http_0.0.0.0_8443: no such version\n", func(text string) bool { return contains(text, c.refused) })
				e.start()
				src.publish(secure(c.after), through("taken", 2), edge("open", 8081))
				e.play()
				if e.has[lds]["http_0.0.0.0_8443"] == nil {
					t.Fatalf("has listeners %v", e.has[lds])
				}
				wantRunning(t, s, map[*schema.Object]bool{secure(c.before): false, edge("open", 8081): true, through("taken", 2): c.runs})
			})
		})
	}
}

// TestNACKOfAClusterHoldsUpNobodyElse checks that a proxy which refuses one cluster runs
// everything else, and that rules which lead to a cluster that it never had do not run.
func TestNACKOfAClusterHoldsUpNobodyElse(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		src, s, e := three(t, kind)
		e.refusing(cds, "Error adding/updating cluster(s) out.b.example|http: it is bad.", isBad)
		src.publish(pool("a.example", 2), pool("b.example", badPool), timeout("b.example", 2))
		e.play()
		wantRunning(t, s, map[*schema.Object]bool{pool("a.example", 2): true, pool("b.example", badPool): false, timeout("b.example", 2): true, pool("c.example", 1): true})

		e.refusing(cds, "Error adding/updating cluster(s) out.d.example|http: it is bad.", isBad)
		src.publish(pool("b.example", 2), service("d.example", 80, 4, "a"), pool("d.example", badPool), timeout("d.example", 2))
		e.play()
		wantRunning(t, s, map[*schema.Object]bool{pool("b.example", 2): true, pool("d.example", badPool): false, timeout("d.example", 2): false, pool("c.example", 1): true})
	})
}
