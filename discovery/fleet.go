package discovery

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/mesh"
)

// fleet is all known proxies and the slots of their views. It is found out here
// whom a change of the registry gives another view; everybody else stays where
// they are, and a publication does not look at them.
//
// Its lock is held for moments only. It is taken under those of a Stream, of a
// handover and of a slot, and so none of them under it; that of refusing is.
type fleet struct {
	opts Options
	age  func() time.Duration

	mu      sync.RWMutex
	clients map[mesh.Node]*client
	slots   map[string]*slot // by mesh.View.Key
	byIP    map[string]group // of those to whom it matters what is there
	routers group
	stating group // labels
	domains map[home]*stated
	behind  group              // who is not told the view of its slot
	nobody  *client            // in no table by node, and for ever
	open    map[*slot]struct{} // that have no view which is good
	swept   time.Duration      // when sweepLocked did so last
	retired time.Duration      // when retire did
	dropped []*slot            // that somebody must still let go

	refusing refusing
	askedV1  atomic.Int64 // when any proxy last did in v1, as age gives it; 0 for never
}

type group map[*client]struct{}

// home is the domain, namespace and locality that proxies state.
type home struct{ domain, namespace, locality string }

func homeOf(p mesh.Proxy) home { return home{p.Domain, p.Namespace, p.Locality} }

// stated are the proxies that state one home.
type stated struct {
	known   knowledge // as the last snapshot has it
	clients group
}

// knowledge is what a snapshot makes of a home. Where a proxy states no locality,
// its place is that of its instances.
type knowledge struct {
	domain, place string
	asksPlace     bool
}

func knownOf(p mesh.Proxy, mv mesh.View) knowledge {
	known := knowledge{domain: mv.Domain, asksPlace: mv.AsksPlace}
	if p.Locality != "" {
		known.place = mv.Place
	}
	return known
}

func newFleet(opts Options, age func() time.Duration) *fleet {
	return &fleet{
		opts: opts, age: age,
		clients: map[mesh.Node]*client{}, slots: map[string]*slot{},
		byIP: map[string]group{}, domains: map[home]*stated{}, behind: group{}, open: map[*slot]struct{}{},
		routers: group{}, stating: group{},
		nobody: nobody(opts.Settings.Domain),
	}
}

func (f *fleet) find(node mesh.Node) *client {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.clients[node]
}

func (f *fleet) has(key string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.slots[key] != nil
}

// isTold reports whether the view is what its slot tells now.
func (f *fleet) isTold(v *compiled.View) *slot {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if sl := f.slots[v.Key]; sl != nil && sl.view.Load() == v {
		return sl
	}
	return nil
}

// size is the number of slots and of proxies.
func (f *fleet) size() (slots, clients int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.slots), len(f.clients)
}

// admit makes a proxy known in the slot of its view, unless it is known. At a
// bound it takes the place of another one.
func (f *fleet) admit(node mesh.Node, proxy mesh.Proxy, mv mesh.View) *client {
	key := mv.Key()
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clients[node]; c != nil {
		return c
	}
	if len(f.clients) >= f.opts.MaxProxies {
		f.sweepLocked()
	}
	if len(f.clients) >= f.opts.MaxProxies {
		f.evictClientLocked()
	}
	c := &client{node: node, proxy: proxy}
	c.handover.Refusing = func(does bool) { c.polls.Store(does); f.noteRefusing(c) }
	c.seen.Store(int64(f.age()))
	c.awaited.Silent = func() bool { return c.gone.Load() || len(f.streamsOf(c)) > 0 || !f.polledLately(c) }
	c.joined = f.age()
	c.left.Store(-1)
	f.clients[node] = c
	f.indexLocked(c, mv)
	f.enterLocked(c, &place{slot: f.slotLocked(key, mv)})
	return c
}

// survey gives nobody its slot.
func (f *fleet) survey(g *compiled.Generation) {
	mv := f.nobody.viewIn(g.Mesh)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nobody.place.Load() != nil {
		return
	}
	f.indexLocked(f.nobody, mv)
	sl := f.slotLocked(mv.Key(), mv)
	sl.usesV3.Store(true)
	f.enterLocked(f.nobody, &place{slot: sl})
}

// slotLocked is that of a view. At the bound it takes the place of another one.
func (f *fleet) slotLocked(key string, mv mesh.View) *slot {
	if sl := f.slots[key]; sl != nil {
		return sl
	}
	if len(f.slots) >= f.opts.MaxViews {
		f.sweepLocked()
	}
	if len(f.slots) >= f.opts.MaxViews {
		f.evictSlotLocked()
	}
	sl := &slot{key: key, unknown: len(mv.Instances) == 0, stranger: mv.Role == mesh.Sidecar && len(mv.Instances) == 0, members: group{}}
	sl.seen.Store(int64(f.age()))
	f.slots[key], f.open[sl] = sl, struct{}{}
	return sl
}

// indexLocked has a proxy found by what its view depends on.
func (f *fleet) indexLocked(c *client, mv mesh.View) {
	if c.proxy.Role == mesh.Router {
		f.routers[c] = struct{}{}
	}
	if len(c.proxy.Labels) > 0 {
		f.stating[c] = struct{}{}
	}
	if c.proxy.Role != mesh.Ingress {
		if f.byIP[c.proxy.IP] == nil {
			f.byIP[c.proxy.IP] = group{}
		}
		f.byIP[c.proxy.IP][c] = struct{}{}
	}
	d := f.domains[homeOf(c.proxy)]
	if d == nil {
		d = &stated{known: knownOf(c.proxy, mv), clients: group{}}
		f.domains[homeOf(c.proxy)] = d
	}
	d.clients[c] = struct{}{}
}

func (f *fleet) enterLocked(c *client, at *place) {
	at.slot.members[c] = struct{}{}
	at.slot.streams += len(c.streams)
	if at.slot.speaker == nil {
		at.slot.speaker = c
	}
	c.place.Store(at)
}

// leaveLocked takes a proxy out of its slot; one that nobody is in is dropped.
func (f *fleet) leaveLocked(c *client) {
	sl := c.place.Load().slot
	delete(sl.members, c)
	sl.streams -= len(c.streams)
	if sl.speaker != c {
		return
	}
	sl.speaker = nil
	for other := range sl.members {
		sl.speaker = other
		return
	}
	f.dropLocked(sl)
}

func (f *fleet) dropLocked(sl *slot) {
	if f.slots[sl.key] == sl {
		delete(f.slots, sl.key)
		delete(f.open, sl)
		f.dropped = append(f.dropped, sl)
	}
}

// takeDropped hands over the slots that were dropped.
func (f *fleet) takeDropped() []*slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	dropped := f.dropped
	f.dropped = nil
	return dropped
}

// forgetLocked makes a proxy unknown.
func (f *fleet) forgetLocked(c *client) {
	delete(f.clients, c.node)
	delete(f.behind, c)
	delete(f.routers, c)
	delete(f.stating, c)
	if at := f.byIP[c.proxy.IP]; at != nil {
		if delete(at, c); len(at) == 0 {
			delete(f.byIP, c.proxy.IP)
		}
	}
	d := f.domains[homeOf(c.proxy)]
	if delete(d.clients, c); len(d.clients) == 0 {
		delete(f.domains, homeOf(c.proxy))
	}
	c.gone.Store(true)
	c.awake()
	f.refusing.note(c, func() bool { return false })
	f.leaveLocked(c)
}

// rekey moves the proxies that a change of the registry gives the view of
// another key.
func (f *fleet) rekey(before, next *compiled.Generation) {
	for c := range f.concerned(before.Mesh, next.Mesh) {
		f.move(c, c.viewIn(next.Mesh), next)
	}
}

// concerned are the proxies at whose address there are other instances than
// before, those of whose domain more or less is known, and those that have a
// label for which somebody asks now, or nobody any more.
func (f *fleet) concerned(before, next *mesh.Snapshot) group {
	found := group{}
	addresses := changedAddresses(before, next)
	f.mu.Lock()
	defer f.mu.Unlock()
	for ip := range addresses {
		maps.Copy(found, f.byIP[ip])
	}
	f.askedLocked(before, next, found)
	if next.SameStated(before) {
		return found
	}
	for at, d := range f.domains {
		probe := mesh.Proxy{Role: mesh.Router, Domain: at.domain, Namespace: at.namespace, Locality: at.locality}
		known := knownOf(probe, next.View(probe))
		if known != d.known {
			d.known = known
			maps.Copy(found, d.clients)
		}
	}
	return found
}

// askedLocked notes the proxies of which other labels count than before. Those
// of routers may be the ones of instances.
func (f *fleet) askedLocked(before, next *mesh.Snapshot, found group) {
	labels, known := next.LabelsSince(before)
	if known && len(labels) == 0 {
		return
	}
	maps.Copy(found, f.routers)
	for c := range f.stating {
		if !known || slices.ContainsFunc(labels, func(l mesh.Label) bool { value, has := c.proxy.Labels[l.Name]; return has && value == l.Value }) {
			found[c] = struct{}{}
		}
	}
}

// move brings a proxy to the slot of another view. It is told what it was told
// until settle.
func (f *fleet) move(c *client, mv mesh.View, next *compiled.Generation) {
	key := mv.Key()
	f.mu.Lock()
	defer f.mu.Unlock()
	at := c.place.Load()
	if at.slot.key == key || c != f.nobody && f.clients[c.node] != c {
		return
	}
	sl := f.slotLocked(key, mv)
	if c != f.nobody && f.clients[c.node] != c {
		return // It has gone to make room for the slot.
	}
	sl.seen.Store(max(sl.seen.Load(), c.seen.Load()))
	if at.slot.usesV1.Load() {
		sl.usesV1.Store(true)
		sl.askedV1.Store(max(sl.askedV1.Load(), at.slot.askedV1.Load()))
	}
	if at.slot.usesV3.Load() {
		sl.usesV3.Store(true)
	}
	if at.slot.usesStreams.Load() {
		sl.usesStreams.Store(true)
	}
	if at.slot.usesProxyless.Load() {
		sl.usesProxyless.Store(true)
	}
	last := at.last
	if last == nil {
		last = at.slot.view.Load()
	}
	f.leaveLocked(c)
	f.enterLocked(c, &place{slot: sl, last: last, since: next.Serial, revision: next.Mesh.Revision})
	f.behind[c] = struct{}{}
}

// settle tells the proxies that were moved the view of their new slots, unless
// good says that it is none for one that had the old.
func (f *fleet) settle(serial int64, good func(c *client, old, next *compiled.View) error) {
	f.mu.RLock()
	behind := slices.Collect(maps.Keys(f.behind))
	f.mu.RUnlock()
	for _, c := range behind {
		at := c.place.Load()
		next := at.slot.view.Load()
		if next == nil || at.last != nil && good(c, at.last, next) != nil {
			continue
		}
		f.mu.Lock()
		if c.place.Load() == at {
			c.place.Store(&place{slot: at.slot, since: serial, revision: at.revision})
			delete(f.behind, c)
			c.awake()
		}
		f.mu.Unlock()
	}
}

// due are the slots that a generation must be compiled for, the one that was last
// asked of first: those of views that it concerns, and those without one that is
// good.
func (f *fleet) due(concerned []string) []*slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := maps.Clone(f.open)
	for _, key := range concerned {
		if sl := f.slots[key]; sl != nil {
			all[sl] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b *slot) int { return cmp.Compare(b.seen.Load(), a.seen.Load()) })
}

// settled notes whether a slot has a view that is good, which stays so until a
// change concerns it.
func (f *fleet) settled(sl *slot, good bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if good || f.slots[sl.key] != sl {
		delete(f.open, sl)
	} else {
		f.open[sl] = struct{}{}
	}
}

// unsettle has all slots compiled again.
func (f *fleet) unsettle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, sl := range f.slots {
		f.open[sl] = struct{}{}
	}
}

// retire drops the slots that no proxy asked of since an age, with their proxies.
// It looks at all of them, and so at most once a second.
func (f *fleet) retire(idle time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.age()
	if f.retired != 0 && now-f.retired < time.Second {
		return
	}
	f.retired = now
	oldest := int64(now - idle)
	pinned := f.nobody.place.Load().slot
	for _, sl := range f.slots {
		if sl == pinned || sl.streams > 0 || sl.seen.Load() >= oldest {
			continue
		}
		for c := range sl.members {
			f.forgetLocked(c)
		}
	}
}

func (f *fleet) speakerOf(sl *slot) *client {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return sl.speaker
}
