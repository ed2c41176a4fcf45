package compile

import (
	"reflect"
	"slices"

	"github.com/pilot-api/pilot-api/ir"
)

// leading returns a virtual host with the parts of its routes that depend on their
// clusters: the clusters' names and hash keys.
func (c *writer) leading(host *ir.VirtualHost) *ir.VirtualHost {
	return c.hashed(host).Renamed(c.renamed)
}

func (c *writer) hashed(host *ir.VirtualHost) *ir.VirtualHost {
	if !c.byKey {
		return host
	}
	out := *host
	out.Routes = slices.Clone(host.Routes)
	for i, r := range out.Routes {
		if keys := c.hashKeys(r); len(keys) > 0 {
			hashed := *r // The route is shared with other callers.
			hashed.Hash = keys
			out.Routes[i] = &hashed
		}
	}
	return &out
}

// hashKeys returns the hash keys of the clusters that a route leads to, each once.
func (c *writer) hashKeys(r *ir.Route) []ir.HashKey {
	var out []ir.HashKey
	for _, to := range r.Clusters {
		key, ok := c.hashKey(to.Name)
		if ok && !slices.ContainsFunc(out, func(k ir.HashKey) bool { return reflect.DeepEqual(k, key) }) {
			out = append(out, key)
		}
	}
	return out
}

// hashKey returns the hash key of a target's cluster, or false if it has none.
func (c *writer) hashKey(target string) (ir.HashKey, bool) {
	cluster := c.added[target].cluster
	if cluster == nil || cluster.Hash == nil {
		return ir.HashKey{}, false
	}
	return cluster.Hash.Key, true
}
