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
	server    *Server
	serial    int64 // counts generations of this process
	mesh      *mesh.Snapshot
	pool      *pool
	endpoints endpointSets

	registrations lazy[Answer]

	mu     sync.RWMutex
	views  map[string]*lazy[view] // by mesh.View.Key
	places map[string]*place      // by node
	stale  map[string]bool        // reasons why some proxies kept what they had
	swept  time.Time

	surveyed *view // nil when it is no good
}

// client is what is known about one proxy, from one generation to the next.
type client struct {
	node   string
	proxy  mesh.Proxy
	seen   atomic.Int64 // unix seconds
	usesV1 atomic.Bool
	usesV3 atomic.Bool

	handover handover
}

// place is a client and what it is told in one generation.
type place struct {
	*client
	view *view
}

func newGeneration(s *Server, snapshot *mesh.Snapshot, before *generation) *generation {
	g := &generation{
		server: s,
		mesh:   snapshot,
		views:  map[string]*lazy[view]{},
		places: map[string]*place{},
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
func (s *Server) locate(node string) (*place, *generation, error) {
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
	p.seen.Store(time.Now().Unix())
	return p, g, nil
}

// join makes a place for a proxy that this generation does not know.
func (g *generation) join(node string) (*place, error) {
	proxy, err := parseNode(node)
	if err != nil {
		return nil, err
	}
	v, err := g.viewOf(g.mesh.View(proxy))
	if err != nil {
		return nil, fmt.Errorf("%w for %s: %w", ErrNotReady, node, err)
	}
	p := &place{client: &client{node: node, proxy: proxy}, view: v}
	p.seen.Store(time.Now().Unix())
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

func (g *generation) setPlace(p *place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.places) >= g.server.opts.MaxProxies {
		g.sweepLocked()
	}
	if len(g.places) < g.server.opts.MaxProxies {
		g.places[p.node] = p
	}
}

// viewOf is the compiled view of a proxy, shared by all with the same key and
// compiled by whoever comes first.
func (g *generation) viewOf(mv mesh.View) (*view, error) {
	slot, err := g.slot(mv.Key())
	if err != nil {
		return nil, err
	}
	return slot.get(func() (*view, error) { return g.compileView(mv) })
}

func (g *generation) slot(key string) (*lazy[view], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slot := g.views[key]; slot != nil {
		return slot, nil
	}
	if len(g.views) >= g.server.opts.MaxViews {
		g.sweepLocked()
	}
	if len(g.views) >= g.server.opts.MaxViews {
		return nil, fmt.Errorf("there are %d different views in use, the most allowed", len(g.views))
	}
	slot := &lazy[view]{}
	g.views[key] = slot
	return slot, nil
}

// sweepLocked forgets the proxies that fell silent and the views nobody has. It
// looks at everything, and so at most once a second.
func (g *generation) sweepLocked() {
	now := time.Now()
	if now.Sub(g.swept) < time.Second {
		return
	}
	g.swept = now
	oldest := now.Add(-g.server.opts.ProxyIdle).Unix()
	used := map[*view]bool{g.surveyed: true}
	for node, p := range g.places {
		if p.seen.Load() < oldest {
			delete(g.places, node)
			continue
		}
		used[p.view] = true
	}
	for key, slot := range g.views {
		if v := slot.peek(); v != nil && !used[v] {
			delete(g.views, key)
		}
	}
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

func (g *generation) placesSince(oldest time.Time) []*place {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var out []*place
	for _, p := range g.places {
		if p.seen.Load() >= oldest.Unix() {
			out = append(out, p)
		}
	}
	return out
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
func refusalsOf(places map[string]*place) diag.List {
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
