package discovery

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/mesh"
)

// maxChecksV1 is of how many kinds of proxies that ask in v1 a write is told what they
// lose.
const maxChecksV1 = 8

// kindV1 is all that a proxy states but its workload.
type kindV1 struct {
	role   mesh.Role
	home   home
	labels string
}

func kindOf(c *client) kindV1 { return kindV1{c.proxy.Role, homeOf(c.proxy), c.node.Labels} }

// lossesV1 are those of a kind, by the view of one of them.
type lossesV1 struct {
	v1.Losses
	of *client
}

// asksV1 notes that a proxy of a slot does.
func (f *fleet) asksV1(sl *slot) {
	now := max(1, int64(f.age()))
	sl.usesV1.Store(true)
	sl.askedV1.Store(now)
	f.askedV1.Store(now)
}

// askV1 is a proxy for each view in which one has asked in v1 in the last ProxyIdle; the
// one whose view was last asked for comes first.
func (f *fleet) askV1() []*client {
	oldest := int64(f.age() - f.opts.ProxyIdle)
	asksSince := func(at int64) bool { return at != 0 && at >= oldest }
	if !asksSince(f.askedV1.Load()) {
		return nil // Mostly; no slot needs to be looked at for it.
	}
	asked := map[*client]int64{}
	f.mu.RLock()
	for _, sl := range f.slots {
		if at := sl.askedV1.Load(); asksSince(at) && sl.speaker != nil {
			asked[sl.speaker] = at
		}
	}
	f.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(asked), func(a, b *client) int {
		return cmp.Or(cmp.Compare(asked[b], asked[a]), cmp.Compare(a.node.ID, b.node.ID))
	})
}

// lostInV1 is what some objects ask for and proxies lose that ask in v1.
func (c *checker) lostInV1(objects map[diag.Ref]bool) diag.List {
	c.chooseV1()
	found, views := map[diag.Problem]bool{}, map[string]bool{}
	for _, one := range c.lost {
		v := one.of.viewIn(c.at)
		views[v.Key()] = true
		config, _, err := c.compiler.ProxyWithin(context.Background(), v)
		if err != nil {
			continue // There is no room to find it out.
		}
		one.Advance(config, one.of.proxy.IP)
		for _, p := range one.List(func(of diag.Ref) bool { return objects[of] }) {
			found[p] = true
		}
	}
	for key := range c.views {
		if !views[key] {
			c.compiler.Release(key, func() bool { return false })
		}
	}
	c.views = views
	return slices.SortedFunc(maps.Keys(found), feedback.CompareProblems)
}

// chooseV1 finds the kinds to look at, and a proxy for each: those of the last time, for
// little is new of them, and then those that asked last.
func (c *checker) chooseV1() {
	asked := c.fleet.askV1()
	of := map[kindV1]*client{}
	for _, one := range asked {
		kind := kindOf(one)
		if last := c.lost[kind]; of[kind] == nil || last != nil && last.of == one {
			of[kind] = one
		}
	}
	maps.DeleteFunc(c.lost, func(kind kindV1, _ *lossesV1) bool { return of[kind] == nil })
	for _, one := range asked {
		if kind := kindOf(one); c.lost[kind] == nil && len(c.lost) < maxChecksV1 {
			c.lost[kind] = &lossesV1{}
		}
	}
	for kind, one := range c.lost {
		one.of = of[kind]
	}
}
