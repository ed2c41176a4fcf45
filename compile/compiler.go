package compile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Compiler compiles a sequence of snapshots. For each one it recomputes only the results
// that changed since the one before. Its methods are safe for concurrent use.
type Compiler struct {
	mu    sync.Mutex
	snap  *mesh.Snapshot
	model *model
	graph atomic.Pointer[query.Graph] // the model's graph
	quota *Quota
	stake *stake // in the room beside the present mesh; nil if this is the present mesh
}

// NewCompiler returns a compiler without a snapshot and without a bound on its
// results.
func NewCompiler() *Compiler { return NewCompilerWithin(NewQuota(0)) }

// NewCompilerWithin returns a compiler whose results count against a Quota. It compiles the
// present mesh of the Quota, and never waits for others.
func NewCompilerWithin(quota *Quota) *Compiler { return &Compiler{quota: quota} }

// NewCompilerBeside returns a compiler for a mesh other than the present one. Its views may
// use only memory that the present mesh leaves free; without it, ProxyWithin returns
// ErrOverBudget. Release and Close give the memory back, and so does the garbage collection
// of the compiler.
func NewCompilerBeside(quota *Quota) *Compiler {
	c := &Compiler{quota: quota, stake: &stake{room: &quota.room}}
	runtime.AddCleanup(c, (*stake).end, c.stake)
	return c
}

// Advance sets the snapshot for all further calls of Proxy.
func (c *Compiler) Advance(next *mesh.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.model == nil || c.snap.Settings != next.Settings {
		c.anew(next.Settings)
	}
	objects, services := changesBetween(c.snap, next), next.ServicesSince(c.snap)
	c.model.graph.Do(func(r *query.Reader) {
		c.model.update(objects, services)
		c.model.takeFiles(next.Files)
		c.model.takeKeys(next.Keys)
		c.model.registry.closedPorts.Set(none{}, next.ClosedPorts)
		c.model.budget.settle(r)
		c.model.settleRuledHosts(r)
	})
	c.snap = next
	parts := next.Parts + c.model.budget.ledger.Parts()
	if c.stake == nil {
		c.quota.room.setPresent(parts, next.Settings.BudgetOrDefault())
	} else {
		c.stake.grow(parts)
	}
}

// anew discards everything that was compiled under other settings.
func (c *Compiler) anew(settings *mesh.Settings) {
	before := c.model
	c.model, c.snap = newModel(settings, query.NewGraphWithin(c.quota.Quota)), nil
	c.graph.Store(c.model.graph)
	if before != nil {
		before.graph.Discard()
		c.model.configs.Doubt(maps.Keys(before.callers))
	}
}

// Close removes the compiler's results from the Quota. Afterwards only Advance may be
// called.
func (c *Compiler) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.model != nil {
		c.model.graph.Discard()
	}
	if c.stake != nil {
		c.stake.end()
	}
	c.model, c.snap = nil, nil
	c.graph.Store(nil)
}

// Proxy returns the configuration of all proxies with the given view of the last
// snapshot. It also returns the problems that they have in addition to those of the
// snapshot, sorted by object. The configuration keeps every promise of package ir:
// a part that would break one fails closed and becomes a problem. Unchanged parts
// are reused: an unchanged part is the same pointer as before, and a configuration
// whose parts are all unchanged is the same pointer too.
//
// The result is kept until Release. Parts shared with other views are kept as long
// as one of those views is.
func (c *Compiler) Proxy(traits mesh.Traits) (*ir.Config, diag.List) {
	config, problems, _ := c.proxy(traits, func(_ bool, do func()) error { do(); return nil })
	return config, problems // Without limits there is no error.
}

// ProxyWithin is like Proxy, but stays within the Quota and within a bound of work. No view
// of a mesh within its budget comes near that bound. It ends early when ctx ends. On an
// error, a view that was compiled before is unchanged, and a new view is not kept.
func (c *Compiler) ProxyWithin(ctx context.Context, traits mesh.Traits) (*ir.Config, diag.List, error) {
	return c.proxy(traits, func(isNew bool, do func()) error {
		if !c.hold() {
			return errNoRoom
		}
		l := query.Limits{Steps: mostSteps}
		if isNew {
			l.Share = reserved
		}
		return c.model.graph.Try(ctx, l, do)
	})
}

// hold takes room for the views that are known, and reports whether there is enough.
func (c *Compiler) hold() bool { return c.stake == nil || c.stake.hold(len(c.model.callers)) }

// errNoRoom means that the present mesh leaves no room for a view beside it.
var errNoRoom = errors.New("no room beside the present mesh")

// mostSteps is how many results a view may compute and read: some seconds of work.
// A view of 5,000 services, with separate rules for each namespace, takes 200,000.
const mostSteps = 4_000_000

// reserved is the part of the Quota that new views may not use, so that existing
// views can be recompiled.
const reserved = 10 // percent of the Quota

// proxy compiles a view; try runs the computation and receives whether the view is
// new.
func (c *Compiler) proxy(traits mesh.Traits, try func(isNew bool, do func()) error) (*ir.Config, diag.List, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out *compiled
	var err error
	key := traits.Key()
	c.model.graph.Do(func(r *query.Reader) {
		isNew := c.model.callers[key] == nil
		c.model.know(key, traits)
		if err = try(isNew, func() { out = c.model.configs.Keep(r, key) }); err != nil && isNew {
			c.model.configs.Drop(key)
			c.model.forget(key)
			c.hold()
		}
	})
	switch {
	case errors.Is(err, errNoRoom):
		return nil, nil, fmt.Errorf("%w: there is no room for another mesh beside the present one (budget in the mesh settings)", ErrOverBudget)
	case errors.Is(err, query.ErrFull):
		return nil, nil, fmt.Errorf("%w: the configurations of all proxies take %d results, at most %d are kept", ErrOverBudget, c.quota.Used(), c.quota.Most())
	case errors.Is(err, query.ErrDear):
		return nil, nil, fmt.Errorf("%w: to compile it takes more than %d steps", ErrOverBudget, mostSteps)
	case err != nil:
		return nil, nil, err
	}
	return out.config, out.problems, nil
}

// ErrOverBudget means that the configurations of all proxies together, or one of
// them, would exceed their limit.
var ErrOverBudget = errors.New("over budget")

// Release drops the configuration of the view with a key, unless wanted returns
// true. wanted runs under the compiler's lock, so a concurrent Proxy call cannot
// lose its result.
func (c *Compiler) Release(key string, wanted func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wanted() {
		return
	}
	c.model.graph.Do(func(*query.Reader) {
		c.model.configs.Drop(key)
		c.model.forget(key)
	})
	c.hold()
}

// OnDemand returns what a proxy learns only when its workload calls it, by its Sidecar or the
// mesh settings.
func (c *Compiler) OnDemand(traits mesh.Traits) (mode mesh.OnDemandMode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.model.graph.Do(func(r *query.Reader) {
		p, who := c.model.context(r), c.model.callerOf(traits)
		mode = p.onDemand(p.sidecarFor(who, p.forDomain(who.domain).namespace))
	})
	return mode
}

// Concerned returns the keys of the views whose configuration or problems may have
// changed since they were last compiled. All other views are unchanged.
func (c *Compiler) Concerned() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.model.configs.Doubted()
}

// Problems returns the problems of the whole snapshot that the config kinds cause,
// sorted by object. The registry's own problems are in Snapshot.Problems.
func (c *Compiler) Problems() diag.List {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out diag.List
	c.model.graph.Do(func(r *query.Reader) { out = c.model.problems.Keep(r, none{}) })
	return out
}

// ProblemsOf returns the part of Problems that is about the given objects. It examines
// other objects only as far as they may affect these.
func (c *Compiler) ProblemsOf(objects map[diag.Ref]bool) diag.List {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all diag.Collector
	c.model.graph.Do(func(r *query.Reader) {
		for _, part := range c.model.foundOf(r, objects) {
			for _, found := range part.collectors {
				all.MergeOf(found, objects)
			}
		}
	})
	return all.List()
}

// Runs returns how many results have been computed so far.
func (c *Compiler) Runs() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.model.graph.Runs()
}

// Reads returns how many times computations have read an input or a result so far.
func (c *Compiler) Reads() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.model.graph.Reads()
}

// Size returns how many values of any kind are held. It takes no lock.
func (c *Compiler) Size() int {
	if graph := c.graph.Load(); graph != nil {
		return graph.Size()
	}
	return 0
}

// know records the caller of a view, which the queries of the view read.
func (m *model) know(key string, traits mesh.Traits) {
	who := m.callerOf(traits)
	if before := m.callers[key]; before != nil && slices.EqualFunc(before.own, who.own, sameOwn) {
		return
	}
	m.callers[key] = who
	m.views.Set(key, who)
}

func (m *model) callerOf(traits mesh.Traits) *caller {
	who := &caller{
		scope:  scope{role: traits.Role, domain: traits.Domain, network: traits.Network},
		labels: traits.Labels, namespace: mesh.NamespaceOf(traits.Domain, m.settings.Domain), locality: traits.Locality,
		called: traits.Called,
	}
	for _, i := range traits.Instances {
		who.own = append(who.own, m.registry.ownInstance(i))
	}
	return who
}

func (m *model) forget(key string) {
	delete(m.callers, key)
	m.views.Set(key, nil)
}

// changesBetween returns the objects of each kind that changed. Without an earlier
// snapshot, all objects are new.
func changesBetween(before, next *mesh.Snapshot) map[string][]change[schema.Object] {
	objects := map[string][]change[schema.Object]{}
	if told, ok := next.ChangesSince(before); ok {
		for _, c := range told {
			kind := cmp.Or(c.After, c.Before).Kind.Kind
			objects[kind] = append(objects[kind], change[schema.Object]{c.Before, c.After})
		}
		return objects
	}
	for _, kind := range schema.Kinds() {
		var last []*schema.Object
		if before != nil {
			last = before.Objects(kind.Kind)
		}
		objects[kind.Kind] = differences(last, next.Objects(kind.Kind))
	}
	return objects
}

// differences returns the objects that changed, matched by key.
func differences(before, after []*schema.Object) []change[schema.Object] {
	if sameList(before, after) || slices.Equal(before, after) {
		return nil
	}
	last := map[schema.Key]*schema.Object{}
	for _, o := range before {
		last[o.Key()] = o
	}
	var out []change[schema.Object]
	for _, o := range after {
		key := o.Key()
		if last[key] != o {
			out = append(out, change[schema.Object]{last[key], o})
		}
		delete(last, key)
	}
	for gone := range maps.Values(last) {
		out = append(out, change[schema.Object]{before: gone})
	}
	return out
}
