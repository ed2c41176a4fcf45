package fleet

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/mesh"
)

// KindV1 is everything that a proxy states, except its workload.
type KindV1 struct {
	role   mesh.Role
	home   home
	labels string
}

func KindOf(c *Client) KindV1 { return KindV1{c.Proxy.Role, homeOf(c.Proxy), c.Node.Labels} }

// AsksV1 records that a proxy of an entry uses the v1 API.
func (f *Fleet) AsksV1(entry *ViewEntry) {
	now := max(1, int64(f.age()))
	entry.usesV1.Store(true)
	entry.askedV1.Store(now)
	f.askedV1.Store(now)
}

// AskV1 returns one proxy for each view that a proxy used over v1 in the last ProxyIdle.
// The view that was used last comes first.
func (f *Fleet) AskV1() []*Client {
	oldest := int64(f.age() - f.opts.ProxyIdle)
	asksSince := func(at int64) bool { return at != 0 && at >= oldest }
	if !asksSince(f.askedV1.Load()) {
		return nil // In most meshes nobody uses v1, and no entry needs to be looked at.
	}
	asked := map[*Client]int64{}
	f.mu.RLock()
	for _, entry := range f.entries {
		if at := entry.askedV1.Load(); asksSince(at) && entry.representative != nil {
			asked[entry.representative] = at
		}
	}
	f.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(asked), func(a, b *Client) int {
		return cmp.Or(cmp.Compare(asked[b], asked[a]), cmp.Compare(a.Node.ID, b.Node.ID))
	})
}
