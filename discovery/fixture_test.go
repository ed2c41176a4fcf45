package discovery_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/schema/schematest"
)

// Proxies of the tests: two beside nothing, two beside an instance of
// web.example.
const (
	nodeA   = "sidecar~10.9.0.1~a.default~default.svc.cluster.local"
	nodeB   = "sidecar~10.9.0.2~b.default~default.svc.cluster.local"
	nodeWeb = "sidecar~10.1.0.1~web-1.default~default.svc.cluster.local"
)

// objects is a Source that a test changes step by step.
type objects struct {
	mu       sync.Mutex
	revision int64
	synced   bool
	all      []*schema.Object
	past     map[int64][]*schema.Object // all, by revision
	changed  chan struct{}
	err      error // what Err says
}

func newObjects(all ...*schema.Object) *objects {
	all = slices.Clone(all)
	return &objects{revision: 1, synced: true, all: all, past: map[int64][]*schema.Object{1: all}, changed: make(chan struct{})}
}

func (o *objects) Snapshot() ([]*schema.Object, int64, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]*schema.Object(nil), o.all...), o.revision, o.synced
}

// Since is what a store knows that keeps everything.
func (o *objects) Since(revision int64) ([]schema.Change, int64, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, ok := o.past[revision]
	if !ok || !o.synced {
		return nil, 0, false
	}
	now := o.all
	for len(before) > 0 && len(now) > 0 && before[0] == now[0] {
		before, now = before[1:], now[1:]
	}
	for len(before) > 0 && len(now) > 0 && before[len(before)-1] == now[len(now)-1] {
		before, now = before[:len(before)-1], now[:len(now)-1]
	}
	var changes []schema.Change
	gone := map[schema.Key]*schema.Object{}
	for _, was := range before {
		gone[was.Key()] = was
	}
	for _, is := range now {
		if was := gone[is.Key()]; was != is {
			changes = append(changes, schema.Change{Before: was, After: is})
		}
		delete(gone, is.Key())
	}
	for _, was := range gone {
		changes = append(changes, schema.Change{Before: was})
	}
	return changes, o.revision, true
}

func (o *objects) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

func (o *objects) Err() error { return o.err }

// set makes this the whole content, one revision later.
func (o *objects) set(all ...*schema.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all, o.synced = all, true
	o.revision++
	o.past[o.revision] = all
	delete(o.past, o.revision-10)
	close(o.changed)
	o.changed = make(chan struct{})
}

// replace changes one object.
func (o *objects) replace(at int, next *schema.Object) {
	all := slices.Clone(o.all)
	all[at] = next
	o.set(all...)
}

// goOn is a change of revision and of nothing else.
func (o *objects) goOn(revision int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.revision = revision
	o.past[revision] = o.all
}

// relist has other values of the same objects from now on, as a store has that
// was read anew; what led there is not known.
func (o *objects) relist(t testing.TB) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, was := range o.all {
		again, err := schema.New(was.Kind, was.Meta, was.SpecJSON())
		if err != nil {
			t.Fatal(err)
		}
		o.all[i] = again
	}
	o.past = map[int64][]*schema.Object{}
	close(o.changed)
	o.changed = make(chan struct{})
}

// restore goes back to another revision; the next set is the one after it.
func (o *objects) restore(revision int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.revision, o.past = revision, map[int64][]*schema.Object{}
}

func object(t testing.TB, kind, name, spec string) *schema.Object {
	t.Helper()
	return schematest.Object(t, kind, "default", name, spec)
}

// service has one HTTP port 80 and one instance, at the given address.
func service(t testing.TB, host, ip string) *schema.Object {
	return object(t, "ServiceEntry", host, fmt.Sprintf(
		`{"hosts":[%q],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":80,"name":"http","protocol":"HTTP"}],`+
			`"endpoints":[{"address":%q,"ports":{"http":8080}}]}`, host, ip))
}

// timeout is a rule that tells its versions apart by a time-out in seconds.
func timeout(t testing.TB, host string, seconds int) *schema.Object {
	return object(t, "RouteRule", "timeout", fmt.Sprintf(
		`{"destination":{"service":%q},"precedence":1,"route":[{"weight":100}],"httpReqTimeout":{"simpleTimeout":{"timeout":"%ds"}}}`, host, seconds))
}

func settings() *mesh.Settings {
	s := mesh.DefaultSettings()
	s.ProxyHTTPPort = 15002
	return s
}

// follow runs a server over the source, inside a bubble (testing/synctest) in
// which it has settled when this returns.
func follow(t testing.TB, src discovery.Source, opts discovery.Options) *discovery.Publisher {
	t.Helper()
	return followWith(t, src, opts, &faults{})
}

// faults are mistakes of ours in the compiler, in the middle of a test: each may
// panic.
type faults struct {
	advance func(*mesh.Snapshot)
	proxy   func(mesh.Traits)
	release func(key string)
}

type faulty struct {
	discovery.Compiler
	*faults
}

func (f faulty) Advance(next *mesh.Snapshot) {
	if f.advance != nil {
		f.advance(next)
	}
	f.Compiler.Advance(next)
}

func (f faulty) ProxyWithin(ctx context.Context, traits mesh.Traits) (*ir.Config, diag.List, error) {
	if f.proxy != nil {
		f.proxy(traits)
	}
	return f.Compiler.ProxyWithin(ctx, traits)
}

func (f faulty) Release(key string, wanted func() bool) {
	if f.release != nil {
		f.release(key)
	}
	f.Compiler.Release(key, wanted)
}

func followWith(t testing.TB, src discovery.Source, opts discovery.Options, f *faults) *discovery.Publisher {
	t.Helper()
	opts.Source = src
	if opts.Settings == nil {
		opts.Settings = settings()
	}
	s := discovery.NewWith(opts, func(c discovery.Compiler) discovery.Compiler { return faulty{c, f} })
	started(t, s)
	return s
}

// started runs a server inside a bubble, in which it has settled when this returns.
func started(t testing.TB, s *discovery.Publisher) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Run(ctx); err != context.Canceled {
			t.Errorf("Run: %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
}
