package discovery

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/mesh"
)

// maxChecksV1 is of how many kinds of proxies that ask in v1 a write is told what they
// lose.
const maxChecksV1 = 8

// askV1 are proxies that have asked in v1 in the last ProxyIdle, or share the view of
// one that has, one of each view and the one whose view was last asked for first.
func (f *fleet) askV1() []*client {
	oldest := int64(f.age() - f.opts.ProxyIdle)
	if at := f.askedV1.Load(); at == 0 || at < oldest {
		return nil // Mostly; no slot needs to be looked at for it.
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	var asked []*slot
	for _, sl := range f.slots {
		if at := sl.askedV1.Load(); at != 0 && at >= oldest && sl.speaker != nil {
			asked = append(asked, sl)
		}
	}
	slices.SortFunc(asked, func(a, b *slot) int {
		return cmp.Or(cmp.Compare(b.askedV1.Load(), a.askedV1.Load()), cmp.Compare(a.key, b.key))
	})
	all := make([]*client, len(asked))
	for i, sl := range asked {
		all[i] = sl.speaker
	}
	return all
}

// asksV1 notes that a proxy of a slot does.
func (f *fleet) asksV1(sl *slot) {
	now := max(1, int64(f.age()))
	sl.usesV1.Store(true)
	sl.askedV1.Store(now)
	f.askedV1.Store(now)
}

// lostInV1 is what some objects ask for and proxies lose that ask in v1: one of each
// kind, which is all that a view says but the workload.
func (c *checker) lostInV1(objects map[diag.Ref]bool) diag.List {
	kinds, wanted := map[string]bool{}, map[string]bool{}
	found := map[diag.Problem]bool{}
	for _, of := range c.fleet.askV1() {
		v := of.viewIn(c.at)
		if kind := kindOf(v); kinds[kind] || len(kinds) == maxChecksV1 {
			continue
		} else {
			kinds[kind] = true
		}
		key := v.Key()
		if wanted[key] = true; c.lost[key] == nil {
			c.lost[key] = &v1.Losses{}
		}
		config, _ := c.compiler.Proxy(v)
		c.lost[key].Advance(config, of.proxy.IP)
		for _, p := range c.lost[key].List(func(of diag.Ref) bool { return objects[of] }) {
			found[p] = true
		}
	}
	for key := range c.lost {
		if !wanted[key] {
			delete(c.lost, key)
			c.compiler.Release(key, func() bool { return false })
		}
	}
	return slices.SortedFunc(maps.Keys(found), compareProblems)
}

// kindOf is equal for views that differ in their workloads alone.
func kindOf(v mesh.View) string {
	v.Instances = nil
	return v.Key()
}
