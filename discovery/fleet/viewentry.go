package fleet

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// ViewEntry has the present view of one mesh.Traits.Key. All proxies of the key find their
// view here, so one atomic store changes it for all of them.
type ViewEntry struct {
	Key          string
	unknown      bool         // no workload of the registry is at the address
	unregistered bool         // no proxy of a workload that the registry knows
	seen         atomic.Int64 // when a proxy last sent a request, as Publisher.age gives it

	askedV1 atomic.Int64 // when a proxy last used v1, likewise; 0 for never

	// The API versions that proxies of the entry use are encoded ahead.
	usesV1, UsesV3, UsesStreams, UsesProxyless atomic.Bool

	current   atomic.Pointer[compiled.View] // the last good view, nil before the first
	keptSince atomic.Int64                  // revision since which the view is kept although there should be another one, 0 for none
	compiled  atomic.Pointer[diag.List]

	// Guarded by the fleet's lock.
	members        clientSet
	streams        int     // of the members
	representative *Client // the member that the view is compiled for

	recent pastviews.RecentClusters
	born   atomic.Int64 // serial of the generation of the first view

	mu     sync.Mutex    // held while a view is made and put into place
	failed error         // why there is no view in a generation
	at     int64         // serial of that generation
	since  time.Duration // when it failed, as Publisher.age gives it
	closed bool
}

// ErrClosed means that the entry has no proxies any more.
var ErrClosed = errors.New("the view is gone")

// Compile compiles a view and returns it with its problems.
type Compile func() (*ir.Config, diag.List, error)

// First returns the view of an entry. If there is none, the first caller compiles it and
// the others wait. made reports whether this call compiled it. An error is kept for a
// generation.
func (f *Fleet) First(g *compiled.Generation, entry *ViewEntry, compile Compile) (v *compiled.View, made bool, err error) {
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if v := entry.current.Load(); v != nil {
		return v, false, nil
	}
	switch {
	case entry.closed:
		return nil, false, ErrClosed
	case entry.failed != nil && entry.at == g.Serial && !entry.mayRetry(f.age()):
		return nil, false, entry.failed
	}
	config, problems, err := entry.compile(g, compile, f.age)
	if err != nil {
		return nil, false, err
	}
	v = compiled.NewView(g, entry.Key, config)
	entry.born.Store(g.Serial)
	entry.compiled.Store(&problems)
	entry.current.Store(v)
	f.Settled(entry, true)
	return v, true, nil
}

// compile compiles the view, and records why there is none.
func (e *ViewEntry) compile(g *compiled.Generation, compile Compile, age func() time.Duration) (*ir.Config, diag.List, error) {
	config, problems, err := compile()
	e.failed, e.at, e.since = err, g.Serial, age()
	return config, problems, err
}

// retryAfter is how long after an attempt the server looks again for room for a view.
const retryAfter = 30 * time.Second

// mayRetry reports whether there may be room by now for a view that there was no room for.
func (e *ViewEntry) mayRetry(now time.Duration) bool {
	return errors.Is(e.failed, compile.ErrOverBudget) && now-e.since >= retryAfter
}

// Retry lets the next proxy of an entry try again to compile a view that did not fit into
// memory.
func (e *ViewEntry) Retry() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = nil
}

// Renewal describes how to bring an entry to another generation.
type Renewal struct {
	Representative *Client
	Compile        Compile
	// Good returns why the next view must not replace the present one, or nil if it may.
	Good func(before, next *compiled.View) error
	// Replacing is called before the next view replaces the present one.
	Replacing func()
}

// Renew brings an entry to a generation, and reports whether anything is new. On an error
// the entry is unchanged.
func (f *Fleet) Renew(g *compiled.Generation, entry *ViewEntry, r Renewal) (changed bool, err error) {
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if entry.closed {
		return false, nil
	}
	defer func() { entry.keeps(err, g) }()
	config, problems, err := entry.compile(g, r.Compile, f.age)
	if err != nil {
		return false, err
	}
	before := entry.current.Load()
	if before == nil || before.Config != config {
		v := compiled.NewView(g, entry.Key, config)
		if err = entry.encodeAhead(v, r.Representative.Proxy.IP); err == nil && before != nil {
			err = r.Good(before, v)
		}
		if err != nil {
			entry.failed, entry.at = err, g.Serial
			return false, err
		}
		f.replaceLocked(g, entry, before, v, r)
		changed = true
	}
	old := entry.compiled.Swap(&problems)
	return changed || old == nil || !feedback.SameList(*old, problems), nil
}

// The caller of replaceLocked holds the entry's lock. before is nil if there was no view.
func (f *Fleet) replaceLocked(g *compiled.Generation, entry *ViewEntry, before, v *compiled.View, r Renewal) {
	if before == nil {
		entry.born.Store(g.Serial)
		entry.current.Store(v)
	} else {
		entry.recent.Note(compiled.Withdrawn(before.Config, v.Config))
		r.Replacing()
		entry.current.Store(v)
		until := g.Since
		if kept := entry.keptSince.Load(); kept != 0 {
			until = min(until, kept)
		}
		before.Until.Store(until)
	}
	f.wakeMembers(entry)
}

// keeps sets since which revision the entry has kept an older view than it should have.
func (e *ViewEntry) keeps(err error, g *compiled.Generation) {
	switch {
	case err == nil:
		e.keptSince.Store(0)
	case e.keptSince.Load() == 0:
		e.keptSince.Store(g.Since)
	}
}

// EncodeJSON makes the JSON of the entry's view for the polls of v3, if proxies of the entry use
// them. ip is the address of one of them. EncodeJSON returns early if ctx ends.
func (e *ViewEntry) EncodeJSON(ctx context.Context, ip string) error {
	v := e.current.Load()
	if v == nil || !e.UsesV3.Load() {
		return nil
	}
	answers, err := v.EncodedV3(ip)
	if err == nil {
		answers.EncodeJSON(ctx, ip)
	}
	return err
}

// encodeAhead encodes the view in every API version that proxies of the entry have used,
// so that no poll waits for that.
func (e *ViewEntry) encodeAhead(v *compiled.View, ip string) error {
	if e.usesV1.Load() {
		if _, err := v.EncodedV1(ip); err != nil {
			return err
		}
	}
	if e.UsesV3.Load() {
		if _, err := v.EncodedV3(ip); err != nil {
			return err
		}
	}
	if e.UsesStreams.Load() {
		if _, err := v.EncodedStreamed(ip); err != nil {
			return err
		}
	}
	if e.UsesProxyless.Load() {
		if _, err := v.EncodedProxyless(); err != nil {
			return err
		}
	}
	return nil
}

// Problems returns the known problems of the entry's view.
func (e *ViewEntry) Problems() diag.List {
	var all diag.List
	if compiled := e.compiled.Load(); compiled != nil {
		all = *compiled
	}
	if v := e.current.Load(); v != nil {
		all = append(all[:len(all):len(all)], v.Problems()...)
	}
	return all
}

// Release closes an entry that the fleet has dropped, and calls letGo under the entry's
// lock.
func (e *ViewEntry) Release(letGo func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	letGo()
}

// PastViews returns the past views that a proxy of the entry may be at; next is the view
// that it should be at. It also returns a view with the clusters that the entry lost
// recently, or nil if there are none. is reports whether the proxy is known to be at a
// view.
func (e *ViewEntry) PastViews(past *pastviews.Recorder, proxy mesh.Proxy, next *compiled.View, is func(*compiled.View) bool) (views []*compiled.View, recent *compiled.View) {
	return past.ViewsOf(proxy, next, e.born.Load(), is), e.recent.View()
}
