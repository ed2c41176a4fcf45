package compile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Compiler compiles one snapshot after another, and makes nothing again that
// the change between them does not concern. Its methods are safe for
// concurrent use.
type Compiler struct {
	mu    sync.Mutex
	snap  *mesh.Snapshot
	model *model
	graph atomic.Pointer[query.Graph] // that of the model
	quota *Quota
}

// Quota bounds the results that some compilers keep together.
type Quota = query.Quota

// NewQuota allows so many results; 0 for any number.
func NewQuota(most int) *Quota { return query.NewQuota(most) }

// NewCompiler makes one that knows no snapshot yet, and keeps whatever it makes.
func NewCompiler() *Compiler { return NewCompilerWithin(NewQuota(0)) }

// NewCompilerWithin makes one whose results count in a Quota.
func NewCompilerWithin(quota *Quota) *Compiler { return &Compiler{quota: quota} }

// Advance takes the next snapshot, which Proxy compiles from then on.
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
		c.model.registry.closedPorts.Set(none{}, next.ClosedPorts)
		c.model.budget.settle(r)
		c.model.settleRuledHosts(r)
	})
	c.snap = next
}

// anew forgets all that was compiled under other settings.
func (c *Compiler) anew(settings *mesh.Settings) {
	before := c.model
	c.model, c.snap = newModel(settings, query.NewGraphWithin(c.quota)), nil
	c.graph.Store(c.model.graph)
	if before != nil {
		before.graph.Discard()
		c.model.configs.Doubt(maps.Keys(before.callers))
	}
}

// Close takes all results out of the Quota. The next call must be Advance, if any.
func (c *Compiler) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.model != nil {
		c.model.graph.Discard()
	}
	c.model, c.snap = nil, nil
	c.graph.Store(nil)
}

// Proxy is the configuration of all proxies with one view of the last snapshot,
// and the problems that they have beside those of the snapshot, sorted by
// object. Every promise of package ir holds for it: what would break one is
// closed, and a problem. What it was made of before and still is of equal parts
// keeps them: an unchanged part is the same pointer, and a configuration of
// unchanged parts is the same configuration.
//
// It is kept until Release, and so is what is shared with other views as long
// as one of them is.
func (c *Compiler) Proxy(v mesh.View) (*ir.Config, diag.List) {
	config, problems, _ := c.proxy(v, func(_ bool, do func()) error { do(); return nil })
	return config, problems // Without limits there is no error.
}

// ProxyWithin is Proxy within the Quota, and within a bound of work that no view of
// a mesh within its budget comes near. It ends early when ctx ends. With an error a
// view that was compiled before is as it was, and a new one is not kept.
func (c *Compiler) ProxyWithin(ctx context.Context, v mesh.View) (*ir.Config, diag.List, error) {
	return c.proxy(v, func(isNew bool, do func()) error {
		l := query.Limits{Steps: mostSteps}
		if isNew {
			l.Share = reserved
		}
		return c.model.graph.Try(ctx, l, do)
	})
}

// mostSteps is how many results a view may compute and read, some seconds' work. A
// view of 5,000 services, with rules of their own for each namespace, takes 200,000.
const mostSteps = 4_000_000

// New views find less room, so that those that proxies have can be renewed.
const reserved = 10 // percent of the Quota

// proxy has try make what is to be kept. It is told whether the view is new.
func (c *Compiler) proxy(v mesh.View, try func(isNew bool, do func()) error) (*ir.Config, diag.List, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out *compiled
	var err error
	key := v.Key()
	c.model.graph.Do(func(r *query.Reader) {
		isNew := c.model.callers[key] == nil
		c.model.know(key, v)
		if err = try(isNew, func() { out = c.model.configs.Keep(r, key) }); err != nil && isNew {
			c.model.configs.Drop(key)
			c.model.forget(key)
		}
	})
	switch {
	case errors.Is(err, query.ErrFull):
		return nil, nil, fmt.Errorf("%w: the configurations of all proxies take %d results, at most %d are kept", ErrOverBudget, c.quota.Used(), c.quota.Most())
	case errors.Is(err, query.ErrDear):
		return nil, nil, fmt.Errorf("%w: to compile it takes more than %d steps", ErrOverBudget, mostSteps)
	case err != nil:
		return nil, nil, err
	}
	return out.config, out.problems, nil
}

// ErrOverBudget: the configurations of all proxies together, or one of them, would
// take more than they may.
var ErrOverBudget = errors.New("over budget")

// Release lets go of the configuration of the view with a key, unless it is wanted:
// that is asked while Proxy makes nothing, so that what it makes for who wants it
// from then on is kept.
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
}

// Concerned are the keys of the views that may have another configuration, or
// other problems, than when they were last compiled. All others are as they were.
func (c *Compiler) Concerned() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.model.configs.Doubted()
}

// Problems are those of the whole snapshot that the config kinds are to blame
// for, sorted by object; the registry's own are in Snapshot.Problems.
func (c *Compiler) Problems() diag.List {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out diag.List
	c.model.graph.Do(func(r *query.Reader) { out = c.model.problems.Keep(r, none{}) })
	return out
}

// ProblemsOf are those among Problems that some objects have. Of others no more is
// looked at than what may have to do with these.
func (c *Compiler) ProblemsOf(objects map[diag.Ref]bool) diag.List {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all diag.Collector
	c.model.graph.Do(func(r *query.Reader) {
		for _, part := range c.model.foundOf(r, objects) {
			for _, found := range part.of {
				all.MergeOf(found, objects)
			}
		}
	})
	return all.List()
}

// Runs is how many results have been computed so far.
func (c *Compiler) Runs() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.model.graph.Runs()
}

// Reads is how often they have read an input, or each other, so far.
func (c *Compiler) Reads() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.model.graph.Reads()
}

// Size is how many values are kept, of whatever kind. It waits for nothing.
func (c *Compiler) Size() int {
	if graph := c.graph.Load(); graph != nil {
		return graph.Size()
	}
	return 0
}

// know has queries of a view find who it is for.
func (m *model) know(key string, v mesh.View) {
	who := &caller{
		scope:  scope{role: v.Role, domain: v.Domain, network: v.Network},
		labels: v.Labels, namespace: mesh.NamespaceOf(v.Domain, m.settings.Domain), place: v.Place,
	}
	for _, i := range v.Instances {
		who.own = append(who.own, m.registry.ownInstance(i))
	}
	if before := m.callers[key]; before != nil && slices.EqualFunc(before.own, who.own, sameOwn) {
		return
	}
	m.callers[key] = who
	m.views.Set(key, who)
}

func (m *model) forget(key string) {
	delete(m.callers, key)
	m.views.Set(key, nil)
}

// changesBetween are the objects of each kind that are others now. Without a
// snapshot before, all are new.
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

// differences are the objects that are others now, by their keys.
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
