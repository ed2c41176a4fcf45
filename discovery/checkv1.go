package discovery

import (
	"context"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/envoy/v1"
)

// maxChecksV1 bounds the kinds of v1 proxies whose losses are reported for a write.
const maxChecksV1 = 8

// lossesV1 has the losses of a kind of proxies, in the view of one of them.
type lossesV1 struct {
	v1.Losses
	client *fleet.Client
}

// lostInV1 returns what proxies that use v1 lose of some objects.
func (c *checker) lostInV1(objects map[diag.Ref]bool) diag.List {
	c.chooseV1()
	found, views := map[diag.Problem]bool{}, map[string]bool{}
	for _, one := range c.lost {
		traits := one.client.TraitsIn(c.at)
		config, _, err := c.compiler.ProxyWithin(context.Background(), traits)
		if err != nil {
			continue // There is no room to find it out, or to keep what was found.
		}
		views[traits.Key()] = true
		one.Advance(config, one.client.Proxy.IP)
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

// chooseV1 chooses the kinds to look at, and a proxy of each. The kinds of the last time
// come first, because little is new for them, and then those that asked last.
func (c *checker) chooseV1() {
	asked := c.fleet.AskV1()
	of := map[fleet.KindV1]*fleet.Client{}
	for _, one := range asked {
		kind := fleet.KindOf(one)
		if last := c.lost[kind]; of[kind] == nil || last != nil && last.client == one {
			of[kind] = one
		}
	}
	maps.DeleteFunc(c.lost, func(kind fleet.KindV1, _ *lossesV1) bool { return of[kind] == nil })
	for _, one := range asked {
		if kind := fleet.KindOf(one); c.lost[kind] == nil && len(c.lost) < maxChecksV1 {
			c.lost[kind] = &lossesV1{}
		}
	}
	for kind, one := range c.lost {
		one.client = of[kind]
	}
}
