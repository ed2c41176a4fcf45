package discovery_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/mesh"
)

// measured is a mesh whose metrics are read.
type measured struct {
	*large
	t   *testing.T
	reg *prometheus.Registry
}

func newMeasured(t *testing.T) *measured {
	l := newLarge(t, 3, 2, 1, plain)
	m := &measured{large: l, t: t, reg: prometheus.NewRegistry()}
	l.s = discovery.New(discovery.Options{Source: l.src, Settings: settings(), Registry: m.reg})
	once(t, l.s)
	return m
}

// connect has a proxy of a namespace come on a delta stream, and take all.
func (m *measured) connect(n, space int) *simulated.Proxy {
	m.t.Helper()
	before := m.proxies("delta", discovery.Synced)
	node := strings.Replace(simulated.Node(n), "~default.", fmt.Sprintf("~space-%d.", space), 1)
	p, err := simulated.Connect(m.s, node)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(p.Leave)
	m.await(before+1, "delta", discovery.Synced)
	return p
}

// write is an acknowledged write of a route that all are told.
func (m *measured) write() {
	m.s.Acknowledged(m.src.revision + 1)
	m.changeRoute(m.t)
}

func (m *measured) value(name string, labels ...string) float64 {
	m.t.Helper()
	all, err := m.reg.Gather()
	if err != nil {
		m.t.Fatal(err)
	}
	for _, family := range all {
		if family.GetName() != "pilot_discovery_"+name {
			continue
		}
		for _, one := range family.GetMetric() {
			var has []string
			for _, l := range one.GetLabel() {
				has = append(has, l.GetName()+"="+l.GetValue())
			}
			if strings.Join(has, " ") != strings.Join(labels, " ") {
				continue
			}
			if h := one.GetHistogram(); h != nil {
				return float64(h.GetSampleCount())
			}
			return one.GetGauge().GetValue() + one.GetCounter().GetValue()
		}
	}
	return 0
}

// arrived are the changes that the last proxy has accepted.
func (m *measured) arrived(over string) int {
	m.t.Helper()
	return int(m.value("convergence_seconds", "transport="+over))
}

func (m *measured) proxies(over string, state discovery.SyncState) int {
	m.t.Helper()
	return int(m.value("connected_proxies", "state="+string(state), "transport="+over))
}

// await waits until so many proxies are in a state; the end of the test bounds it.
func (m *measured) await(n int, over string, state discovery.SyncState) {
	m.t.Helper()
	for m.proxies(over, state) != n {
		time.Sleep(time.Millisecond)
	}
}

// awaitArrived waits until so many changes have arrived.
func (m *measured) awaitArrived(n int) {
	m.t.Helper()
	for m.arrived("delta") < n {
		time.Sleep(time.Millisecond)
	}
	if got := m.arrived("delta"); got != n {
		m.t.Fatalf("%d changes have arrived, want %d", got, n)
	}
}

// TestConvergence: a change has arrived when the last proxy that it concerns has
// accepted, whatever others do.
func TestConvergence(t *testing.T) {
	m := newMeasured(t)
	m.write()
	if got := m.arrived("delta"); got != 0 {
		t.Errorf("%d changes have arrived at nobody", got)
	}
	quick, slow := m.connect(1, 0), m.connect(2, 1)
	if got := m.arrived("delta"); got != 0 {
		t.Errorf("%d changes have arrived at who came later", got)
	}
	m.write()
	m.awaitArrived(1)

	slow.Hold()
	m.write()
	m.await(1, "delta", discovery.Synced)
	m.await(1, "delta", discovery.Sent)
	if got := m.arrived("delta"); got != 1 {
		t.Errorf("arrived while one has not accepted: %d", got)
	}
	// It does not concern the slow one.
	m.s.Acknowledged(m.src.revision + 1)
	m.changeScoped(t)
	m.awaitArrived(2)
	// Who takes the newest has taken what was before.
	m.write()
	slow.Accept()
	m.awaitArrived(4)

	slow.Hold()
	m.write()
	m.await(1, "delta", discovery.Sent)
	m.await(1, "delta", discovery.Synced)
	slow.Leave()
	m.awaitArrived(5)
	m.await(0, "delta", discovery.Sent)

	refuses := m.connect(3, 1)
	refuses.Refuse(discovery.RouteType, "half a request")
	m.write()
	m.await(1, "delta", discovery.Rejected)
	m.awaitArrived(6)
	m.write()
	m.awaitArrived(7)

	// It holds back endpoints, too.
	quick.Hold()
	m.s.Acknowledged(m.src.revision + 1)
	m.changeEndpoint(t)
	m.await(1, "delta", discovery.Sent)
	quick.Accept()
	m.awaitArrived(8)
	if got := m.value("convergence_abandoned_total", "transport=delta"); got != 0 {
		t.Errorf("%v changes were given up", got)
	}
}

// TestConvergenceIsBounded: of changes that somebody never takes the newest are followed.
func TestConvergenceIsBounded(t *testing.T) {
	m := newMeasured(t)
	slow := m.connect(1, 0)
	slow.Hold()
	const bound, more = 64, 6
	for range bound + more {
		m.write()
	}
	if got := m.value("convergence_abandoned_total", "transport=delta"); got != more {
		t.Errorf("%v changes were given up, want %d", got, more)
	}
	slow.Accept()
	m.awaitArrived(bound)
}

// TestConvergenceOverPolls: over REST a change has arrived when the next poll carries its
// version, over v1 when it was fetched.
func TestConvergenceOverPolls(t *testing.T) {
	m := newMeasured(t)
	rest, v1 := mesh.Node{ID: simulated.Node(1)}, simulated.Node(2)
	versions := map[string]string{}
	poll := func() {
		t.Helper()
		for _, ask := range []struct {
			typeURL string
			names   []string
		}{{discovery.ClusterType, nil}, {discovery.ListenerType, nil}, {discovery.RouteType, []string{"80"}}, {discovery.RouteType, []string{proxyTable}}, {discovery.EndpointType, nil}} {
			key := ask.typeURL + strings.Join(ask.names, ",")
			a, err := m.s.V3(ask.typeURL, rest, versions[key], ask.names)
			if err != nil {
				t.Fatal(err)
			}
			versions[key] = a.Version
		}
	}
	fetch := func() {
		t.Helper()
		for _, ask := range []func() (discovery.Answer, error){
			func() (discovery.Answer, error) { return m.s.V1Clusters(v1) },
			func() (discovery.Answer, error) { return m.s.V1Listeners(v1) },
			func() (discovery.Answer, error) { return m.s.V1Routes(v1, "80") },
		} {
			if _, err := ask(); err != nil {
				t.Fatal(err)
			}
		}
	}
	poll()
	poll()
	fetch()
	fetch()
	if m.proxies("rest", discovery.Synced) != 1 || m.proxies("v1", discovery.Fetched) != 1 {
		t.Fatal("not settled")
	}
	was := m.s.Revision()
	m.write()
	poll()
	if got := m.arrived("rest"); got != 0 {
		t.Errorf("%d changes have arrived with their answers", got)
	}
	if p := m.s.ProxiesCalled(rest.ID)[0]; p.Revision != was {
		t.Errorf("it runs revision %d before it has taken it, want %d", p.Revision, was)
	}
	if m.proxies("v1", discovery.Stale) != 1 {
		t.Error("who has not fetched the newest is not stale")
	}
	poll()
	fetch()
	if m.arrived("rest") != 1 || m.arrived("v1") != 1 {
		t.Errorf("arrived over REST: %d, over v1: %d, want 1 each", m.arrived("rest"), m.arrived("v1"))
	}
}
