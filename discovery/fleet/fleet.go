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

// Options are the bounds of a Fleet and the functions that it needs. All are required.
type Options struct {
	MaxProxies, MaxViews int
	ProxyIdle            time.Duration // after which a silent proxy may be forgotten
	Domain               string        // of the mesh
	Began                time.Time     // when age was 0
	AbsentFor            time.Duration // how long a proxy that was connected stays known
	// RefusalChanged is called when a proxy begins or ceases to refuse something. It must not call
	// the fleet, and may be nil.
	RefusalChanged func(node string, refuses bool)
}

// Fleet has all known proxies and the entries of their views. When the registry changes, it
// finds the proxies that get another view; a publication looks at no others.
//
// It holds its lock only for moments. Callers may hold the lock of a Stream, a Transition
// or an entry, so the fleet takes none of these under its own. It may take the lock of
// refusing.
type Fleet struct {
	opts Options
	age  func() time.Duration

	remains atomic.Int32 // how many proxies have something that remains of their last stream

	mu            sync.RWMutex
	clients       map[mesh.Node]*Client
	entries       map[string]*ViewEntry // by mesh.Traits.Key
	byIP          map[string]clientSet  // proxies whose view depends on the instances at an address
	routers       clientSet
	stating       clientSet // labels
	domains       map[home]*stated
	behind        clientSet               // those that do not get the view of their entry yet
	DefaultClient *Client                 // in no table by node, and never forgotten
	open          map[*ViewEntry]struct{} // entries without a good view
	swept         time.Duration           // when sweepLocked last swept
	retired       time.Duration           // when Retire last ran
	dropped       []*ViewEntry            // dropped entries that TakeDropped has yet to hand over

	absent   absent
	refusing refusing
	askedV1  atomic.Int64 // when any proxy last used v1, as age gives it; 0 for never
}

type clientSet map[*Client]struct{}

// home is the domain, namespace and locality that a proxy states.
type home struct{ domain, namespace, locality string }

func homeOf(p mesh.Proxy) home { return home{p.Domain, p.Namespace, p.Locality} }

// stated has the proxies that state one home.
type stated struct {
	known   knowledge // according to the last snapshot
	clients clientSet
}

// knowledge has the facts of a snapshot about a home. A proxy that states no locality has the
// locality of its instances.
type knowledge struct {
	domain, locality string
	needsLocality    bool
}

func knownOf(p mesh.Proxy, traits mesh.Traits) knowledge {
	known := knowledge{domain: traits.Domain, needsLocality: traits.NeedsLocality}
	if p.Locality != "" {
		known.locality = traits.Locality
	}
	return known
}

func New(opts Options, age func() time.Duration) *Fleet {
	return &Fleet{
		opts: opts, age: age, refusing: refusing{changed: opts.RefusalChanged},
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

// EntryOf returns the entry that has this view now, or nil if none has.
func (f *Fleet) EntryOf(v *compiled.View) *ViewEntry {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if entry := f.entries[v.Key]; entry != nil && entry.current.Load() == v {
		return entry
	}
	return nil
}

// Size returns the number of entries and of proxies.
func (f *Fleet) Size() (slots, clients int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.entries), len(f.clients)
}

// Admit adds a proxy to the entry of its view, unless the fleet has it already. At the
// bound it replaces another proxy.
func (f *Fleet) Admit(node mesh.Node, proxy mesh.Proxy, traits mesh.Traits) *Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clients[node]; c != nil {
		return c
	}
	c := f.admitLocked(node, proxy, traits)
	f.absent.remove(node)
	return c
}

// AdmitAbsent is Admit for an awaited proxy. It returns nil if the proxy is no longer
// awaited.
func (f *Fleet) AdmitAbsent(node mesh.Node, proxy mesh.Proxy, traits mesh.Traits) *Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, known := f.absent.all[node]
	if f.clients[node] != nil || !known {
		return nil
	}
	return f.admitAbsentLocked(a, proxy, traits)
}

func (f *Fleet) admitAbsentLocked(a absence, proxy mesh.Proxy, traits mesh.Traits) *Client {
	c := f.admitLocked(a.Node, proxy, traits)
	c.seen.Store(int64(a.at))
	c.left.Store(int64(a.at))
	c.absence.Store(&a)
	f.absent.remove(a.Node)
	return c
}

func (f *Fleet) admitLocked(node mesh.Node, proxy mesh.Proxy, traits mesh.Traits) *Client {
	key := traits.Key()
	if len(f.clients) >= f.opts.MaxProxies {
		f.sweepLocked()
	}
	if len(f.clients) >= f.opts.MaxProxies {
		f.evictClientLocked()
	}
	c := &Client{Node: node, Proxy: proxy, namespace: cmp.Or(proxy.Namespace, mesh.NamespaceOf(proxy.Domain, f.opts.Domain))}
	c.called.Store(traits.Called)
	c.Transition.Refusing = func(does bool) { c.polls.Store(does); f.NoteRefusing(c) }
	c.seen.Store(int64(f.age()))
	c.Awaited.Silent = func() bool { return c.gone.Load() || len(f.streamsOf(c)) > 0 || !f.polledLately(c) }
	c.joined = f.age()
	c.left.Store(-1)
	f.clients[node] = c
	f.indexLocked(c, traits)
	f.enterLocked(c, &assignment{entry: f.entryLocked(key, traits)})
	return c
}

// PlaceDefault gives the default client its entry.
func (f *Fleet) PlaceDefault(g *compiled.Generation) {
	traits := f.DefaultClient.TraitsIn(g.Mesh)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.DefaultClient.assignment.Load() != nil {
		return
	}
	f.indexLocked(f.DefaultClient, traits)
	entry := f.entryLocked(traits.Key(), traits)
	entry.UsesV3.Store(true)
	f.enterLocked(f.DefaultClient, &assignment{entry: entry})
}

// entryLocked returns the entry of a view, and makes one if necessary. At the bound the new
// entry replaces another one.
func (f *Fleet) entryLocked(key string, traits mesh.Traits) *ViewEntry {
	if entry := f.entries[key]; entry != nil {
		return entry
	}
	if len(f.entries) >= f.opts.MaxViews {
		f.sweepLocked()
	}
	if len(f.entries) >= f.opts.MaxViews {
		f.evictEntryLocked()
	}
	entry := &ViewEntry{Key: key, unknown: len(traits.Instances) == 0, unregistered: traits.Role == mesh.Sidecar && len(traits.Instances) == 0, members: clientSet{}}
	entry.seen.Store(int64(f.age()))
	f.entries[key], f.open[entry] = entry, struct{}{}
	return entry
}

// indexLocked indexes a proxy by everything that its view depends on.
func (f *Fleet) indexLocked(c *Client, traits mesh.Traits) {
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
		d = &stated{known: knownOf(c.Proxy, traits), clients: clientSet{}}
		f.domains[homeOf(c.Proxy)] = d
	}
	d.clients[c] = struct{}{}
}

func (f *Fleet) enterLocked(c *Client, at *assignment) {
	at.entry.members[c] = struct{}{}
	at.entry.streams += c.streamCount()
	if at.entry.representative == nil {
		at.entry.representative = c
	}
	c.assignment.Store(at)
}

// leaveLocked removes a proxy from its entry, and drops the entry if it has no other
// proxies.
func (f *Fleet) leaveLocked(c *Client) {
	entry := c.assignment.Load().entry
	delete(entry.members, c)
	entry.streams -= c.streamCount()
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

// TakeDropped returns the dropped entries, each once.
func (f *Fleet) TakeDropped() []*ViewEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	dropped := f.dropped
	f.dropped = nil
	return dropped
}

// forgetLocked forgets a proxy.
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
	c.awakeLocked()
	f.refusing.note(c, func() bool { return false })
	f.leaveLocked(c)
}

// MoveToNext moves the proxies whose view has another key after a change of the registry.
func (f *Fleet) MoveToNext(before, next *compiled.Generation) {
	for c := range f.concerned(before.Mesh, next.Mesh) {
		f.move(c, c.TraitsIn(next.Mesh), next)
	}
}

// concerned returns the proxies whose view may have another key: those at an address with
// other instances than before, those in a domain of which more or less is known, and those
// with a label that objects have begun or ceased to select.
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
		known := knownOf(probe, next.TraitsOf(probe))
		if known != d.known {
			d.known = known
			maps.Copy(found, d.clients)
		}
	}
	return found
}

// askedLocked collects the proxies with a label that objects have begun or ceased to
// select. The labels of a router may be those of instances at its address.
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

// move moves a proxy to the entry of another view. The proxy keeps its last view until
// Settle.
func (f *Fleet) move(c *Client, traits mesh.Traits, next *compiled.Generation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moveLocked(c, traits, next)
}

func (f *Fleet) moveLocked(c *Client, traits mesh.Traits, next *compiled.Generation) {
	key := traits.Key()
	at := c.assignment.Load()
	if at.entry.Key == key || c != f.DefaultClient && f.clients[c.Node] != c {
		return
	}
	entry := f.entryLocked(key, traits)
	if c != f.DefaultClient && f.clients[c.Node] != c {
		return // The proxy was forgotten to make room for the entry.
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
	f.enterLocked(c, &assignment{entry: entry, last: last, since: next.Serial, revision: next.Since})
	f.behind[c] = struct{}{}
}

// Settle gives the moved proxies the view of their new entries. A proxy keeps its old view
// if good returns an error for the step from that view to the new one.
func (f *Fleet) Settle(serial int64, good func(c *Client, old, next *compiled.View) error) {
	f.mu.RLock()
	behind := slices.Collect(maps.Keys(f.behind))
	f.mu.RUnlock()
	for _, c := range behind {
		at := c.assignment.Load()
		next := at.entry.current.Load()
		if next == nil || at.last != nil && good(c, at.last, next) != nil {
			continue
		}
		f.mu.Lock()
		if c.assignment.Load() == at {
			c.assignment.Store(&assignment{entry: at.entry, since: serial, revision: at.revision})
			delete(f.behind, c)
			c.awakeLocked()
		}
		f.mu.Unlock()
	}
}

// Due returns the entries to compile for a generation: those of views that it concerns, and
// those without a good view. The entry that was last used comes first.
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

// Settled records whether an entry has a good view. A good view stays good until a change
// concerns it.
func (f *Fleet) Settled(entry *ViewEntry, good bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if good || f.entries[entry.Key] != entry {
		delete(f.open, entry)
	} else {
		f.open[entry] = struct{}{}
	}
}

// Unsettle makes Due return all entries.
func (f *Fleet) Unsettle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, entry := range f.entries {
		f.open[entry] = struct{}{}
	}
}

// Retire drops the entries that no proxy has used since an age, and forgets their proxies.
// It visits all entries, so it runs at most once a second.
func (f *Fleet) Retire(idle time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.age()
	if f.retired != 0 && now-f.retired < time.Second {
		return
	}
	f.retired = now
	oldest := int64(now - idle)
	pinned := f.DefaultClient.assignment.Load().entry
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
