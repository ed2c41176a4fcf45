package discovery_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// TestALostProxyIsAwaitedForAWhile: it counts as one that runs nothing, and then no more.
// It stays among the absent for as long as the options say.
func TestALostProxyIsAwaitedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		s := follow(t, src, discovery.Options{AbsentFor: time.Hour})
		var all []*simulated.Proxy
		for n := range 3 {
			p, err := simulated.Connect(s, simulated.Node(n))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		synctest.Wait()
		ref := web.Key().Ref()
		counted := func(when string, proxies, running, away, absent int) {
			t.Helper()
			of := s.ObjectStatuses(nil).Of(ref, src.revision)
			if of.Proxies != proxies || of.Running != running || of.Away != away {
				t.Errorf("%s: %d of %d run it, %d are away; want %d of %d, %d", when, of.Running, of.Proxies, of.Away, running, proxies, away)
			}
			if n := len(s.Absent()); n != absent {
				t.Errorf("%s: %d are absent, want %d", when, n, absent)
			}
		}
		counted("at first", 3, 3, 0, 0)
		all[0].Leave()
		counted("one has left", 2, 2, 0, 1)
		all[1].Lose()
		counted("one is lost", 2, 1, 1, 2)
		if one := s.Absent()[1]; !one.Lost || one.Revision != src.revision || one.Node.ID != simulated.Node(1) {
			t.Errorf("absent: %+v", one)
		}
		time.Sleep(fleet.ReturnTime)
		counted("after a while", 1, 1, 0, 2)
		time.Sleep(30 * time.Minute) // The fleet forgets clients that are silent.
		counted("after half an hour", 1, 1, 0, 2)
		back, err := simulated.Connect(s, simulated.Node(1))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		counted("one is back", 2, 2, 0, 1)
		time.Sleep(time.Hour)
		counted("at last", 2, 2, 0, 0)
		back.Leave()
		all[2].Leave()
	})
}

// TestProxiesOfBeforeAreAwaited: those that were connected when a server was killed count
// until they come or a while is over, each for its own objects.
func TestProxiesOfBeforeAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web, object(t, "ServiceEntry", "own", `{"hosts":["own.example"],"exportTo":["nowhere"],"resolution":"DNS","ports":[{"number":80,"name":"http","protocol":"HTTP"}]}`))
		killed := follow(t, src, discovery.Options{})
		for n := range 2 {
			p, err := simulated.Connect(killed, simulated.Node(n))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Leave()
		}
		synctest.Wait()
		s := discovery.New(discovery.Options{Source: src, Settings: settings()})
		s.Remember(killed.Roster())
		once(t, s)
		if of := s.ObjectStatuses(nil); of.Returning == 0 && of.Of(web.Key().Ref(), src.revision).Away != 2 {
			t.Errorf("at once: %d return, %+v", of.Returning, of.Of(web.Key().Ref(), src.revision))
		}
		s = discovery.New(discovery.Options{Source: src, Settings: settings()})
		s.Remember(killed.Roster())
		started(t, s)
		own := diag.Ref{Kind: "ServiceEntry", Namespace: "default", Name: "own"}
		look := func(proxies, running, away int) {
			t.Helper()
			all := s.ObjectStatuses(nil)
			if of := all.Of(web.Key().Ref(), src.revision); all.Returning != 0 || of.Proxies != proxies || of.Running != running || of.Away != away {
				t.Errorf("%d return, %+v", all.Returning, of)
			}
			if of := all.Of(own, src.revision); of.Proxies != 0 {
				t.Errorf("what concerns none of them: %+v", of)
			}
		}
		look(2, 0, 2)
		p, err := simulated.Connect(s, simulated.Node(0))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Leave()
		synctest.Wait()
		look(2, 1, 1)
		time.Sleep(fleet.ReturnTime)
		look(1, 1, 0)
		if absent := s.Absent(); len(absent) != 1 || absent[0].Node.ID != simulated.Node(1) || !absent[0].Lost {
			t.Errorf("absent: %+v", absent)
		}
	})
}

// TestAwaitedOverTwoStarts: a proxy that is awaited when a server is killed once more is awaited
// again, however long ago it was seen, and however recently the others were.
func TestAwaitedOverTwoStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		killed := follow(t, src, discovery.Options{})
		for n := range 2 {
			p, err := simulated.Connect(killed, simulated.Node(n))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Leave()
		}
		synctest.Wait()
		pages := killed.Roster()
		time.Sleep(time.Hour) // Nobody comes or goes.
		for range 2 {
			s := discovery.New(discovery.Options{Source: src, Settings: settings()})
			s.Remember(pages)
			started(t, s)
			p, err := simulated.Connect(s, simulated.Node(0))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Leave()
			synctest.Wait()
			if of := s.ObjectStatuses(nil).Of(web.Key().Ref(), src.revision); of.Proxies != 2 || of.Running != 1 || of.Away != 1 {
				t.Errorf("%+v", of)
			}
			pages = s.Roster()
			time.Sleep(time.Second)
		}
		s := discovery.New(discovery.Options{Source: src, Settings: settings()})
		time.Sleep(fleet.ReturnTime)
		s.Remember(pages)
		started(t, s)
		time.Sleep(fleet.ReturnTime)
		if of := s.ObjectStatuses(nil).Of(web.Key().Ref(), src.revision); of.Proxies != 0 {
			t.Errorf("when nobody has come: %+v", of)
		}
	})
}

// comesMeanwhile are the proxies of a replica that died. One connects here while a status is
// computed.
type comesMeanwhile struct {
	node  string
	comes func()
}

func (c *comesMeanwhile) Has(discovery.Node) bool { return false }

func (c *comesMeanwhile) Lost() []discovery.Presence {
	if comes := c.comes; comes != nil {
		c.comes = nil
		defer comes()
	}
	return []discovery.Presence{{Node: discovery.Node{ID: c.node}, Lost: true, LastSeen: time.Now()}}
}

// TestAProxyThatComesMeanwhileCounts: at each moment a proxy is awaited or connected, also while
// a status is computed.
func TestAProxyThatComesMeanwhileCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		others := &comesMeanwhile{node: simulated.Node(0)}
		s := follow(t, src, discovery.Options{Others: others})
		if of := s.ObjectStatuses(nil); of.Returning != 1 {
			t.Errorf("%d are awaited, want 1", of.Returning)
		}
		others.comes = func() {
			p, err := simulated.Connect(s, others.node)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(p.Leave)
		}
		of := s.ObjectStatuses(nil)
		if n := of.Returning + of.Of(web.Key().Ref(), src.revision).Proxies; n == 0 {
			t.Error("a proxy that comes is neither awaited nor connected")
		}
		synctest.Wait()
		if of := s.ObjectStatuses(nil); of.Returning != 0 || of.Of(web.Key().Ref(), src.revision).Running != 1 {
			t.Errorf("%d are awaited, %+v", of.Returning, of.Of(web.Key().Ref(), src.revision))
		}
	})
}
