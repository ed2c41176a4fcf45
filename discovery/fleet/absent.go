package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/stream"
	"github.com/pilot-api/pilot-api/mesh"
)

// A proxy that was connected and is not now stays known for Options.AbsentFor: while the
// fleet has it as a client, by that, and later by its Presence alone. Both are bounded. At
// a bound, those that were seen last longest ago are forgotten.
//
// One that did not end its connection itself is lost. It may run, and for a while it is
// awaited: objects count it as a proxy that does not run them.

const (
	// ReturnTime is how long the server waits for a lost proxy to return. An Envoy tries
	// again after about this time at the latest.
	ReturnTime = 30 * time.Second
	// maxAbsent and maxAbsentBytes bound the proxies that are known by their Presence alone.
	maxAbsent      = 10_000
	maxAbsentBytes = 8 << 20
)

// absence is noted when the last stream of a proxy ends.
type absence struct {
	feedback.Presence
	at time.Duration // when, as age gives it
}

// absent are the proxies that the fleet has no more as clients. The fleet's lock guards it.
type absent struct {
	all   map[mesh.Node]absence
	bytes int
}

func (a *absent) put(p absence) {
	a.remove(p.Node)
	if a.all == nil {
		a.all = map[mesh.Node]absence{}
	}
	a.all[p.Node] = p
	if a.bytes += p.Size(); len(a.all) > maxAbsent || a.bytes > maxAbsentBytes {
		a.shrink()
	}
}

func (a *absent) remove(node mesh.Node) {
	if p, known := a.all[node]; known {
		a.bytes -= p.Size()
		delete(a.all, node)
	}
}

// shrink forgets a tenth of them.
func (a *absent) shrink() {
	oldest := slices.SortedFunc(func(yield func(absence) bool) {
		for _, p := range a.all {
			if !yield(p) {
				return
			}
		}
	}, func(a, b absence) int { return cmp.Compare(a.at, b.at) })
	for _, p := range oldest[:(len(oldest)+9)/10] {
		a.remove(p.Node)
	}
}

// presence returns what is known of a client that has come, as of now.
func (f *Fleet) presence(c *Client, over feedback.Transport, since time.Time, revision int64) feedback.Presence {
	p := feedback.Presence{Node: c.Node, Role: c.Proxy.Role, Transport: over, ConnectedSince: since, LastSeen: time.Now(), Revision: revision}
	if a := c.agent.Load(); a != nil {
		p.EnvoyVersion, p.Address = a.Version, a.Address
	}
	return p
}

// NoteEnd records how a stream ends. Call it before Disconnect, without the stream's own
// lock.
func (f *Fleet) NoteEnd(c *Client, st *stream.Stream) {
	p := f.presence(c, st.Transport(), st.Since(), st.SyncState(feedback.SyncVisitor{}).Revision)
	p.Lost = st.IsLost()
	c.absence.Store(&absence{p, f.age()})
}

// absenceOf returns the absence of a client that is neither on a stream nor polls; ok is
// false for others. The fleet's lock must be held.
func (f *Fleet) absenceOf(c *Client) (absence, bool) {
	if len(c.streams) > 0 || f.polledLately(c) {
		return absence{}, false
	}
	if known := c.absence.Load(); known != nil && c.left.Load() == c.seen.Load() {
		return *known, true
	}
	last := c.lastPoll.Load()
	if last == nil {
		return absence{}, false // It never counted as a proxy.
	}
	out := absence{f.presence(c, last.over, f.opts.Began.Add(c.joined), last.revision), time.Duration(c.seen.Load())}
	out.LastSeen, out.Lost = f.opts.Began.Add(out.at), true
	return out, true
}

// polledAs is the last known state of a proxy that polls.
type polledAs struct {
	over     feedback.Transport
	revision int64
}

// Absent returns the proxies that were connected and are not now, in no order.
func (f *Fleet) Absent() []feedback.Presence {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.age() - f.opts.AbsentFor
	var all []feedback.Presence
	for _, c := range f.clients {
		if a, is := f.absenceOf(c); is && a.at > oldest {
			all = append(all, f.presenceOf(a))
		}
	}
	for node, a := range f.absent.all {
		if f.clients[node] != nil {
			continue
		}
		if a.at <= oldest {
			f.absent.remove(node)
			continue
		}
		all = append(all, f.presenceOf(a))
	}
	return all
}

// presenceOf returns what is known of an absent proxy, as of now.
func (f *Fleet) presenceOf(a absence) feedback.Presence {
	a.Awaited = f.isAwaited(a)
	return a.Presence
}

// IsConnected reports whether a proxy is on a stream, or polls.
func (f *Fleet) IsConnected(node mesh.Node) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	c := f.clients[node]
	return c != nil && (len(c.streams) > 0 || f.polledLately(c))
}

// Remember adds a proxy that was connected before the fleet began. The proxy is absent
// until it connects. If it was connected or awaited when its record ends, it is awaited from now
// on.
func (f *Fleet) Remember(p feedback.Presence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients[p.Node] != nil {
		return
	}
	at := min(f.age(), p.LastSeen.Sub(f.opts.Began))
	if p.Connected || p.Awaited {
		p.Connected, p.Awaited, p.Lost, at = false, false, true, f.age()
	}
	f.absent.put(absence{p, at})
}

// Returning returns the awaited proxies that are not clients yet, in no order.
func (f *Fleet) Returning() (nodes []mesh.Node) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.returningLocked()
}

func (f *Fleet) returningLocked() (nodes []mesh.Node) {
	for node, a := range f.absent.all {
		if f.clients[node] == nil && f.isAwaited(a) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func (f *Fleet) isAwaited(a absence) bool { return a.Lost && f.age()-a.at < ReturnTime }

// lostLocked returns the clients that were lost a short while ago.
func (f *Fleet) lostLocked() (all []*Client) {
	for _, c := range f.clients {
		if a, is := f.absenceOf(c); is && f.isAwaited(a) {
			all = append(all, c)
		}
	}
	return all
}

func (c *Client) absenceTransport() feedback.Transport {
	if a := c.absence.Load(); a != nil {
		return a.Transport
	}
	return feedback.OverREST
}

// rememberLocked keeps what is known of a client that the fleet forgets.
func (f *Fleet) rememberLocked(c *Client) {
	if a, is := f.absenceOf(c); is {
		f.absent.put(a)
	}
}

// Roster returns all proxies that are or were connected here, in no order.
func (f *Fleet) Roster(published int64) []feedback.Presence {
	all := f.Absent()
	unproved := map[string]int{}
	for _, p := range f.present() {
		switch {
		case len(p.streams) > 0:
			st := p.streams[len(p.streams)-1]
			state := p.beside.with(st.SyncState(feedback.SyncVisitor{}), feedback.SyncVisitor{})
			one := f.presence(p.Client, st.Transport(), st.Since(), state.Revision)
			one.Connected = true
			all = append(all, one)
		case f.polledLately(p.Client) && p.isProved(unproved):
			state := p.beside.with(p.stateByPolls(published, feedback.SyncVisitor{}), feedback.SyncVisitor{})
			one := f.presence(p.Client, state.Transport, f.opts.Began.Add(p.joined), state.Revision)
			one.Connected = true
			all = append(all, one)
		}
	}
	return all
}
