package discovery

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// generation is all that follows from one snapshot. What it answers never
// changes; it only grows, by proxies that ask for the first time.
type generation struct {
	server    *Publisher
	serial    int64 // counts generations of this process
	mesh      *mesh.Snapshot
	pool      *pool
	endpoints endpointSets

	registrations lazy[Answer]

	mu     sync.RWMutex
	views  map[string]*slot       // by mesh.View.Key
	places map[string]*proxyState // by node
	stale  map[string]bool        // reasons why some proxies kept what they had
	swept  time.Duration          // when sweepLocked did so last

	surveyed *view // nil when it is no good
}

// client is what is known about one proxy, from one generation to the next.
type client struct {
	node   string
	proxy  mesh.Proxy
	seen   atomic.Int64 // a time.Duration, as Publisher.age gives it
	usesV1 atomic.Bool
	usesV3 atomic.Bool

	handover handover
}

// proxyState is a client and what it is told in one generation.
type proxyState struct {
	*client
	view *view
	slot *slot // that the view came from, or would come from if it were good
}

// slot keeps a view for all with its key.
type slot struct {
	lazy[view]
	seen     atomic.Int64 // when a proxy last asked, likewise
	stranger bool         // no proxy of a workload that the registry knows
}

func newGeneration(s *Publisher, snapshot *mesh.Snapshot, before *generation) *generation {
	g := &generation{
		server: s,
		mesh:   snapshot,
		views:  map[string]*slot{},
		places: map[string]*proxyState{},
		stale:  map[string]bool{},
	}
	if before != nil {
		g.serial = before.serial + 1
	}
	g.pool = newPool(4*s.opts.MaxProxies, before)
	g.endpoints = newEndpointSets(g, before)
	return g
}

// locate finds the place of the proxy that calls itself node. That a node is
// bad is said also while there is nothing to tell.
func (s *Publisher) locate(node string) (*proxyState, *generation, error) {
	g, err := s.published()
	if err != nil {
		_, bad := parseNode(node)
		return nil, nil, cmp.Or(bad, err)
	}
	g.mu.RLock()
	p := g.places[node]
	g.mu.RUnlock()
	if p == nil {
		if p, err = g.join(node); err != nil {
			return nil, nil, err
		}
	}
	p.seen.Store(int64(s.age()))
	p.slot.seen.Store(int64(s.age()))
	return p, g, nil
}

// age is the time since the server was made, by the monotonic clock: the wall
// clock may jump, and nobody has fallen silent for that.
func (s *Publisher) age() time.Duration { return time.Since(s.made) }

// join makes a place for a proxy that this generation does not know.
func (g *generation) join(node string) (*proxyState, error) {
	proxy, err := parseNode(node)
	if err != nil {
		return nil, err
	}
	slot, v, err := g.viewOf(g.mesh.View(proxy))
	if err != nil {
		return nil, fmt.Errorf("%w for %s: %w", ErrNotReady, node, err)
	}
	p := &proxyState{client: &client{node: node, proxy: proxy}, view: v, slot: slot}
	p.seen.Store(int64(g.server.age()))
	g.setPlace(p)
	return p, nil
}

func parseNode(node string) (mesh.Proxy, error) {
	proxy, err := mesh.ParseProxy(node)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBadNode, err)
	}
	return proxy, err
}

// setPlace remembers a proxy. At the bound it takes the place of another one.
func (g *generation) setPlace(p *proxyState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.places) >= g.server.opts.MaxProxies && g.places[p.node] == nil {
		g.sweepLocked()
	}
	if len(g.places) >= g.server.opts.MaxProxies && g.places[p.node] == nil {
		g.evictPlaceLocked()
	}
	g.places[p.node] = p
}

// viewOf is the compiled view of a proxy, shared by all with the same key and
// compiled by whoever comes first.
func (g *generation) viewOf(mv mesh.View) (*slot, *view, error) {
	slot := g.slot(mv)
	v, err := slot.get(func() (*view, error) { return g.compileView(mv) })
	return slot, v, err
}

// slot is that of a view. At the bound it takes the place of another one.
func (g *generation) slot(mv mesh.View) *slot {
	key := mv.Key()
	g.mu.Lock()
	defer g.mu.Unlock()
	if slot := g.views[key]; slot != nil {
		return slot
	}
	if len(g.views) >= g.server.opts.MaxViews {
		g.sweepLocked()
	}
	if len(g.views) >= g.server.opts.MaxViews {
		g.evictViewLocked()
	}
	one := &slot{stranger: mv.Role == mesh.Sidecar && len(mv.Instances) == 0}
	one.seen.Store(int64(g.server.age()))
	g.views[key] = one
	return one
}

// keepLastGood notes, and logs once for each reason, that a proxy keeps what
// it had.
func (g *generation) keepLastGood(node string, reason error) {
	g.server.metrics.refusals.Inc()
	g.mu.Lock()
	known := g.stale[reason.Error()]
	g.stale[reason.Error()] = true
	g.mu.Unlock()
	if !known {
		g.server.opts.Log.Error("not published for some proxies: their last good configuration stays",
			"revision", g.mesh.Revision, "node", node, "err", reason)
	}
}

func (g *generation) viewCount() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.views)
}

// refusingCount counts the proxies that do not take what they are answered.
func (g *generation) refusingCount() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	n := 0
	for _, p := range g.places {
		if p.handover.refuses.Load() {
			n++
		}
	}
	return n
}

func (g *generation) proxyCount() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.places)
}

// problems of the snapshot and of every view in use.
func (g *generation) problems() diag.List {
	all := slices.Clone(g.mesh.Problems)
	for _, v := range g.viewsInUse() {
		all = append(all, v.problems()...)
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	for reason := range g.stale {
		all = append(all, refusal("some proxies keep an older configuration: "+reason))
	}
	return append(all, refusalsOf(g.places)...)
}

// maxRefusals bounds the proxies that are named.
const maxRefusals = 20

// refusalsOf names the proxies that do not take what they are answered.
func refusalsOf(places map[string]*proxyState) diag.List {
	var all diag.List
	var nodes []string
	for node, p := range places {
		if p.handover.refuses.Load() {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	for i, node := range nodes {
		if i == maxRefusals {
			return append(all, refusal(fmt.Sprintf("%d more proxies refuse what they are answered, or do not get it", len(nodes)-i)))
		}
		kept := places[node].handover.refusals()
		all = append(all, refusal(fmt.Sprintf("proxy %s refuses what it is answered, or does not get it: it keeps %s; its log says why",
			node, strings.Join(kept, ", "))))
	}
	return all
}

func (g *generation) viewsInUse() []*view {
	g.mu.RLock()
	defer g.mu.RUnlock()
	used := map[*view]bool{}
	for _, p := range g.places {
		used[p.view] = true
	}
	if g.surveyed != nil {
		used[g.surveyed] = true
	}
	return slices.Collect(maps.Keys(used))
}
