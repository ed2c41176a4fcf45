package fleet

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

// Options are the bounds of a Fleet, and what it needs of the mesh. All are required.
type Options struct {
	MaxProxies, MaxViews int
	ProxyIdle            time.Duration // after which a silent proxy may be forgotten
	Domain               string        // of the mesh
	Began                time.Time     // when age was 0
	AbsentFor            time.Duration // how long a proxy that was connected stays known
	// Turned is called when a proxy begins or ceases to refuse something; it must not call
	// the fleet. Nil is for nobody.
	Turned func(node string, refuses bool)
}

// Fleet is all known proxies and the entries of their views. It finds the proxies that a
// change of the registry gives another view. A publication does not look at the others.
//
// Its lock is held for moments only. It is taken under the locks of a Stream, of a
// Transition and of an entry, so none of these may be taken under it. The lock of
// refusing may.
type Fleet struct {
	opts Options
	age  func() time.Duration

	mu            sync.RWMutex
	clients       map[mesh.Node]*Client
	entries       map[string]*ViewEntry // by mesh.View.Key
	byIP          map[string]clientSet  // of those whose view depends on what is there
	routers       clientSet
	stating       clientSet // labels
	domains       map[home]*stated
	behind        clientSet               // those that do not get the view of their entry
	DefaultClient *Client                 // in no table by node, and for ever
	open          map[*ViewEntry]struct{} // that have no view which is good
	swept         time.Duration           // when sweepLocked did so last
	retired       time.Duration           // when retire did
	dropped       []*ViewEntry            // that somebody must still let go

	absent   absent
	refusing refusing
	askedV1  atomic.Int64 // when any proxy last did in v1, as age gives it; 0 for never
}

type clientSet map[*Client]struct{}

// home is the domain, namespace and locality that proxies state.
type home struct{ domain, namespace, locality string }

func homeOf(p mesh.Proxy) home { return home{p.Domain, p.Namespace, p.Locality} }

// stated are the proxies that state one home.
type stated struct {
	known   knowledge // as the last snapshot has it
	clients clientSet
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

func New(opts Options, age func() time.Duration) *Fleet {
	return &Fleet{
		opts: opts, age: age, refusing: refusing{turned: opts.Turned},
		clients: map[mesh.Node]*Client{}, entries: map[string]*ViewEntry{},
		byIP: map[string]clientSet{}, domains: map[home]*stated{}, behind: clientSet{}, open: map[*ViewEntry]struct{}{},
		routers: clientSet{}, stating: clientSet{},
		DefaultClient: newDefaultClient(opts.Domain),
	}
}

func (f *Fleet) Find(node mesh.Node) *Client {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.clients[node]
}

func (f *Fleet) Has(key string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.entries[key] != nil
}

// EntryOf returns the entry whose view this is now, nil for none.
func (f *Fleet) EntryOf(v *compiled.View) *ViewEntry {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if entry := f.entries[v.Key]; entry != nil && entry.current.Load() == v {
		return entry
	}
	return nil
}

// Size is the number of entries and of proxies.
func (f *Fleet) Size() (slots, clients int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.entries), len(f.clients)
}

// Admit makes a proxy known in the entry of its view, unless it is known. At a
// bound it takes the place of another one.
func (f *Fleet) Admit(node mesh.Node, proxy mesh.Proxy, mv mesh.View) *Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clients[node]; c != nil {
		return c
	}
	c := f.admitLocked(node, proxy, mv)
	f.absent.remove(node)
	return c
}

// AdmitAbsent is Admit for a proxy that is awaited. It returns nil if that is not so any
// more.
func (f *Fleet) AdmitAbsent(node mesh.Node, proxy mesh.Proxy, mv mesh.View) *Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, known := f.absent.all[node]
	if f.clients[node] != nil || !known {
		return nil
	}
	c := f.admitLocked(node, proxy, mv)
	c.seen.Store(int64(a.at))
	c.left.Store(int64(a.at))
	c.absence.Store(&a)
	f.absent.remove(node)
	return c
}

func (f *Fleet) admitLocked(node mesh.Node, proxy mesh.Proxy, mv mesh.View) *Client {
	key := mv.Key()
	if len(f.clients) >= f.opts.MaxProxies {
		f.sweepLocked()
	}
	if len(f.clients) >= f.opts.MaxProxies {
		f.evictClientLocked()
	}
	c := &Client{Node: node, Proxy: proxy}
	c.Transition.Refusing = func(does bool) { c.polls.Store(does); f.NoteRefusing(c) }
	c.seen.Store(int64(f.age()))
	c.Awaited.Silent = func() bool { return c.gone.Load() || len(f.streamsOf(c)) > 0 || !f.polledLately(c) }
	c.joined = f.age()
	c.left.Store(-1)
	f.clients[node] = c
	f.indexLocked(c, mv)
	f.enterLocked(c, &place{entry: f.entryLocked(key, mv)})
	return c
}

// PlaceDefault gives the default client its entry.
func (f *Fleet) PlaceDefault(g *compiled.Generation) {
	mv := f.DefaultClient.ViewIn(g.Mesh)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.DefaultClient.place.Load() != nil {
		return
	}
	f.indexLocked(f.DefaultClient, mv)
	entry := f.entryLocked(mv.Key(), mv)
	entry.UsesV3.Store(true)
	f.enterLocked(f.DefaultClient, &place{entry: entry})
}

// entryLocked returns that of a view. At the bound it takes the place of another one.
func (f *Fleet) entryLocked(key string, mv mesh.View) *ViewEntry {
	if entry := f.entries[key]; entry != nil {
		return entry
	}
	if len(f.entries) >= f.opts.MaxViews {
		f.sweepLocked()
	}
	if len(f.entries) >= f.opts.MaxViews {
		f.evictEntryLocked()
	}
	entry := &ViewEntry{Key: key, unknown: len(mv.Instances) == 0, unregistered: mv.Role == mesh.Sidecar && len(mv.Instances) == 0, members: clientSet{}}
	entry.seen.Store(int64(f.age()))
	f.entries[key], f.open[entry] = entry, struct{}{}
	return entry
}

// indexLocked has a proxy found by what its view depends on.
func (f *Fleet) indexLocked(c *Client, mv mesh.View) {
	if c.Proxy.Role == mesh.Router {
		f.routers[c] = struct{}{}
	}
	if len(c.Proxy.Labels) > 0 {
		f.stating[c] = struct{}{}
	}
	if c.Proxy.Role != mesh.Ingress {
		if f.byIP[c.Proxy.IP] == nil {
			f.byIP[c.Proxy.IP] = clientSet{}
		}
		f.byIP[c.Proxy.IP][c] = struct{}{}
	}
	d := f.domains[homeOf(c.Proxy)]
	if d == nil {
		d = &stated{known: knownOf(c.Proxy, mv), clients: clientSet{}}
		f.domains[homeOf(c.Proxy)] = d
	}
	d.clients[c] = struct{}{}
}

func (f *Fleet) enterLocked(c *Client, at *place) {
	at.entry.members[c] = struct{}{}
	at.entry.streams += len(c.streams)
	if at.entry.representative == nil {
		at.entry.representative = c
	}
	c.place.Store(at)
}

// leaveLocked takes a proxy out of its entry; one that nobody is in is dropped.
func (f *Fleet) leaveLocked(c *Client) {
	entry := c.place.Load().entry
	delete(entry.members, c)
	entry.streams -= len(c.streams)
	if entry.representative != c {
		return
	}
	entry.representative = nil
	for other := range entry.members {
		entry.representative = other
		return
	}
	f.dropLocked(entry)
}

func (f *Fleet) dropLocked(entry *ViewEntry) {
	if f.entries[entry.Key] == entry {
		delete(f.entries, entry.Key)
		delete(f.open, entry)
		f.dropped = append(f.dropped, entry)
	}
}

// TakeDropped hands over the entries that were dropped.
func (f *Fleet) TakeDropped() []*ViewEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	dropped := f.dropped
	f.dropped = nil
	return dropped
}

// forgetLocked makes a proxy unknown.
func (f *Fleet) forgetLocked(c *Client) {
	f.rememberLocked(c)
	delete(f.clients, c.Node)
	delete(f.behind, c)
	delete(f.routers, c)
	delete(f.stating, c)
	if at := f.byIP[c.Proxy.IP]; at != nil {
		if delete(at, c); len(at) == 0 {
			delete(f.byIP, c.Proxy.IP)
		}
	}
	d := f.domains[homeOf(c.Proxy)]
	if delete(d.clients, c); len(d.clients) == 0 {
		delete(f.domains, homeOf(c.Proxy))
	}
	c.gone.Store(true)
	c.awake()
	f.refusing.note(c, func() bool { return false })
	f.leaveLocked(c)
}

// MoveToNext moves the proxies that a change of the registry gives the view of
// another key.
func (f *Fleet) MoveToNext(before, next *compiled.Generation) {
	for c := range f.concerned(before.Mesh, next.Mesh) {
		f.move(c, c.ViewIn(next.Mesh), next)
	}
}

// concerned are the proxies at whose address there are other instances than
// before, those of whose domain more or less is known, and those that have a
// label for which somebody asks now, or nobody any more.
func (f *Fleet) concerned(before, next *mesh.Snapshot) clientSet {
	found := clientSet{}
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
func (f *Fleet) askedLocked(before, next *mesh.Snapshot, found clientSet) {
	labels, known := next.LabelsSince(before)
	if known && len(labels) == 0 {
		return
	}
	maps.Copy(found, f.routers)
	for c := range f.stating {
		if !known || slices.ContainsFunc(labels, func(l mesh.Label) bool { value, has := c.Proxy.Labels[l.Name]; return has && value == l.Value }) {
			found[c] = struct{}{}
		}
	}
}

// move brings a proxy to the entry of another view. It keeps what it had
// until settle.
func (f *Fleet) move(c *Client, mv mesh.View, next *compiled.Generation) {
	key := mv.Key()
	f.mu.Lock()
	defer f.mu.Unlock()
	at := c.place.Load()
	if at.entry.Key == key || c != f.DefaultClient && f.clients[c.Node] != c {
		return
	}
	entry := f.entryLocked(key, mv)
	if c != f.DefaultClient && f.clients[c.Node] != c {
		return // It has gone to make room for the entry.
	}
	entry.seen.Store(max(entry.seen.Load(), c.seen.Load()))
	if at.entry.usesV1.Load() {
		entry.usesV1.Store(true)
		entry.askedV1.Store(max(entry.askedV1.Load(), at.entry.askedV1.Load()))
	}
	if at.entry.UsesV3.Load() {
		entry.UsesV3.Store(true)
	}
	if at.entry.UsesStreams.Load() {
		entry.UsesStreams.Store(true)
	}
	if at.entry.UsesProxyless.Load() {
		entry.UsesProxyless.Store(true)
	}
	last := at.last
	if last == nil {
		last = at.entry.current.Load()
	}
	f.leaveLocked(c)
	f.enterLocked(c, &place{entry: entry, last: last, since: next.Serial, revision: next.Mesh.Revision})
	f.behind[c] = struct{}{}
}

// Settle gives the proxies that were moved the view of their new entries, unless
// good says that it is none for one that had the old.
func (f *Fleet) Settle(serial int64, good func(c *Client, old, next *compiled.View) error) {
	f.mu.RLock()
	behind := slices.Collect(maps.Keys(f.behind))
	f.mu.RUnlock()
	for _, c := range behind {
		at := c.place.Load()
		next := at.entry.current.Load()
		if next == nil || at.last != nil && good(c, at.last, next) != nil {
			continue
		}
		f.mu.Lock()
		if c.place.Load() == at {
			c.place.Store(&place{entry: at.entry, since: serial, revision: at.revision})
			delete(f.behind, c)
			c.awake()
		}
		f.mu.Unlock()
	}
}

// Due are the entries that a generation must be compiled for, the one that was last
// asked of first: those of views that it concerns, and those without one that is
// good.
func (f *Fleet) Due(concerned []string) []*ViewEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := maps.Clone(f.open)
	for _, key := range concerned {
		if entry := f.entries[key]; entry != nil {
			all[entry] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b *ViewEntry) int { return cmp.Compare(b.seen.Load(), a.seen.Load()) })
}

// Settled notes whether an entry has a view that is good, which stays so until a
// change concerns it.
func (f *Fleet) Settled(entry *ViewEntry, good bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if good || f.entries[entry.Key] != entry {
		delete(f.open, entry)
	} else {
		f.open[entry] = struct{}{}
	}
}

// Unsettle has all entries compiled again.
func (f *Fleet) Unsettle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, entry := range f.entries {
		f.open[entry] = struct{}{}
	}
}

// Retire drops the entries that no proxy asked of since an age, with their proxies.
// It looks at all of them, and so at most once a second.
func (f *Fleet) Retire(idle time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.age()
	if f.retired != 0 && now-f.retired < time.Second {
		return
	}
	f.retired = now
	oldest := int64(now - idle)
	pinned := f.DefaultClient.place.Load().entry
	for _, entry := range f.entries {
		if entry == pinned || entry.streams > 0 || entry.seen.Load() >= oldest {
			continue
		}
		for c := range entry.members {
			f.forgetLocked(c)
		}
	}
}

func (f *Fleet) RepresentativeOf(entry *ViewEntry) *Client {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return entry.representative
}
