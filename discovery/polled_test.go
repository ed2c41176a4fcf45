package discovery_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

const webEndpoints = "web.example|http"

// round is one round of polls of an Envoy.
func (p poller) round() {
	p.Helper()
	p.ask(discovery.ClusterType)
	p.ask(discovery.ListenerType)
	p.ask(discovery.RouteType, "80")
	p.ask(discovery.RouteType, proxyTable)
	p.ask(discovery.EndpointType, webEndpoints)
	time.Sleep(5 * time.Second)
}

// counted checks how the present version of an object stands.
func (p poller) counted(when string, o *schema.Object, revision int64, want discovery.ObjectStatus) {
	p.Helper()
	of := p.s.ObjectStatuses(nil).Of(o.Key().Ref(), revision)
	if of.Proxies != want.Proxies || of.Running != want.Running || of.Fetched != want.Fetched {
		p.Errorf("%s: %d proxies, %d run it, %d fetched it; want %d, %d, %d",
			when, of.Proxies, of.Running, of.Fetched, want.Proxies, want.Running, want.Fetched)
	}
}

// settledPoller returns a proxy that has polled until it has everything.
func settledPoller(t *testing.T, src *objects) poller {
	t.Helper()
	p := newPoller(t, follow(t, src, discovery.Options{}))
	for range 3 {
		p.round()
	}
	return p
}

// TestAProxyThatPollsRunsWhatItHasShown: of endpoints, too, an answer is not enough. The
// next poll for them shows that the proxy took it.
func TestAProxyThatPollsRunsWhatItHasShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		p := settledPoller(t, src)
		none, all := discovery.ObjectStatus{Proxies: 1}, discovery.ObjectStatus{Proxies: 1, Running: 1}
		p.counted("at first", web, src.revision, all)
		state := func(want discovery.SyncState) {
			t.Helper()
			if got := p.s.Proxies()[0].Types["endpoints"].State; got != want {
				t.Errorf("endpoints are %s, want %s", got, want)
			}
		}
		state(discovery.Synced)

		before := src.revision
		web = service(t, "web.example", "10.1.0.7")
		src.set(web)
		time.Sleep(time.Second)
		synctest.Wait()
		p.counted("before it polls", web, src.revision, none)
		state(discovery.Stale)
		if one := p.s.Proxies()[0]; one.Revision != before {
			t.Errorf("it runs %d, want %d", one.Revision, before)
		}
		p.ask(discovery.ClusterType)
		p.ask(discovery.ListenerType)
		p.ask(discovery.RouteType, "80")
		p.counted("after polls for all else", web, src.revision, none)
		p.ask(discovery.EndpointType, webEndpoints)
		p.counted("after the answer", web, src.revision, none)
		state(discovery.Sent)
		p.ask(discovery.EndpointType, webEndpoints)
		p.counted("after the next poll", web, src.revision, all)

		p.deny[discovery.EndpointType] = true
		web = service(t, "web.example", "10.1.0.8")
		src.set(web)
		time.Sleep(time.Second)
		for range 6 {
			p.round()
		}
		p.counted("refused", web, src.revision, none)
		state(discovery.Rejected)
		if of := p.s.ObjectStatuses(nil).Of(web.Key().Ref(), src.revision); len(of.Refusals) != 1 || of.Refusals[0].Type != "endpoints" {
			t.Errorf("refusals: %+v", of.Refusals)
		}
	})
}

// TestAReturningProxyThatPollsShowsItsEndpoints: a proxy that comes with versions runs what
// they are of when it has polled everything.
func TestAReturningProxyThatPollsShowsItsEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		p := settledPoller(t, src)
		back := p.at(follow(t, newObjects(web), discovery.Options{}))
		for range 10 { // Some Envoys poll clusters more often than endpoints.
			back.ask(discovery.ClusterType)
			back.ask(discovery.ListenerType)
			back.ask(discovery.RouteType, "80")
			back.ask(discovery.RouteType, proxyTable)
			time.Sleep(time.Second)
		}
		back.counted("before it polls for endpoints", web, 1, discovery.ObjectStatus{Proxies: 1})
		back.round()
		back.counted("after", web, 1, discovery.ObjectStatus{Proxies: 1, Running: 1})
	})
}

// TestAProxyOverV1IsNeverSaidToRun: what it has fetched is counted, and by itself.
func TestAProxyOverV1IsNeverSaidToRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		p := newPoller(t, follow(t, src, discovery.Options{}))
		fetch := func() {
			t.Helper()
			for _, poll := range []func() (discovery.Answer, error){
				func() (discovery.Answer, error) { return p.s.V1Clusters(nodeA) },
				func() (discovery.Answer, error) { return p.s.V1Listeners(nodeA) },
				func() (discovery.Answer, error) { return p.s.V1Routes(nodeA, "80") },
			} {
				if _, err := poll(); err != nil {
					t.Fatal(err)
				}
			}
		}
		fetch()
		fetch()
		none, all := discovery.ObjectStatus{Proxies: 1}, discovery.ObjectStatus{Proxies: 1, Fetched: 1}
		p.counted("at first", web, src.revision, all)
		web = service(t, "web.example", "10.1.0.7")
		src.set(web)
		time.Sleep(time.Second)
		synctest.Wait()
		p.counted("endpoints changed", web, src.revision, none)
		fetch()
		p.counted("after its next polls", web, src.revision, all)
		if one := p.s.Proxies()[0]; one.Revision != 0 || one.Fetched != src.revision {
			t.Errorf("it runs %d and has fetched %d, want 0 and %d", one.Revision, one.Fetched, src.revision)
		}
	})
}

// TestAProxyThatPollsRunsNothingUntilItPollsForAll: a proxy that polls for only some of what it
// should have runs nothing, and its status says what is missing.
func TestAProxyThatPollsRunsNothingUntilItPollsForAll(t *testing.T) {
	polls := []struct {
		typeURL, name string
		unasked       string // what the status says without this poll
		of            string // for this type
	}{
		{discovery.ClusterType, "", "clusters", "clusters"},
		{discovery.EndpointType, webEndpoints, "endpoints", "endpoints"},
		{discovery.ListenerType, "", "listeners", "listeners"},
		{discovery.RouteType, "80", "route table 80", "routes"},
		{discovery.RouteType, proxyTable, "route table " + proxyTable, "routes"},
	}
	for subset := 1; subset < 1<<len(polls); subset++ {
		if subset == 1<<1 {
			continue // Polls for endpoints alone are not those of a proxy.
		}
		synctest.Test(t, func(t *testing.T) {
			web := service(t, "web.example", "10.1.0.1")
			src := newObjects(web)
			p := newPoller(t, follow(t, src, discovery.Options{}))
			for range 10 {
				for i, poll := range polls {
					switch {
					case subset&(1<<i) == 0:
					case poll.name == "":
						p.ask(poll.typeURL)
					default:
						p.ask(poll.typeURL, poll.name)
					}
				}
				time.Sleep(5 * time.Second)
			}
			want := discovery.ObjectStatus{Proxies: 1}
			if subset == 1<<len(polls)-1 {
				want.Running = 1
			}
			p.counted(fmt.Sprintf("subset %05b", subset), web, 1, want)
			for i, poll := range polls {
				if subset&(1<<i) != 0 {
					continue
				}
				if got := p.s.Proxies()[0].Types[poll.of]; got.State != discovery.Stale || got.Error != "the proxy has not polled for "+poll.unasked {
					t.Errorf("subset %05b: %s are %+v", subset, poll.of, got)
				}
				break
			}
		})
	}
}
