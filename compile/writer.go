package compile

import (
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// scope decides which services and rules a proxy sees.
type scope struct {
	role    mesh.Role
	domain  string
	network string
	// sidecar is the Sidecar that the proxies follow, or nil.
	sidecar *sidecar
	// selection is the set of DestinationRules that select the proxies.
	selection selection
}

// writer collects a part of the configuration of proxies, with the clusters that it
// needs.
type writer struct {
	plan   *plan
	domain *viewpoint
	scope  scope
	caller *caller // nil for all callers of the scope
	// varies is set if, without a caller, the configuration is not decided.
	varies bool
	last   *compiled       // previous result of the view, or nil
	lists  [][]*ir.Cluster // from which its clusters were merged

	listeners []*ir.Listener
	httpAt    map[int]*mesh.Service // the first service with HTTP, by port
	owners    *addressOwners
	beside    []*ir.Listener
	tcp       map[ir.HostPort]*ir.Listener // outbound listeners, by address
	inbound   map[int]*mesh.Instance       // own instances by endpoint port
	clusters  map[string]*ir.Cluster
	added     map[string]clusterPart // by the names of targets
	byKey     bool                   // whether some clusters use a hash key
	renamed   map[string]string      // from names of targets to names of their clusters
	ownTables map[*ir.RouteTable]bool
}

func (p *plan) writer(s scope, c *caller) *writer {
	return &writer{
		plan: p, domain: p.forScope(s), scope: s, caller: c,
		clusters: map[string]*ir.Cluster{}, added: map[string]clusterPart{},
	}
}

// fits reports whether a rule limited to a source applies to this caller.
func (c *writer) fits(s *source) bool {
	if c.caller == nil {
		c.varies = c.varies || s != nil
		return s == nil
	}
	return s.fits(c.caller)
}

// own returns the instances beside the proxy.
func (c *writer) own() []*mesh.Instance {
	if c.caller == nil {
		return nil
	}
	return c.caller.own
}

func (c *writer) put(cluster *ir.Cluster) { c.clusters[cluster.Name] = cluster }

func (c *writer) listen(l *ir.Listener) {
	c.withRoots(l)
	c.listeners = append(c.listeners, l)
}

// sortedClusters returns the clusters collected so far, by name.
func (c *writer) sortedClusters() []*ir.Cluster {
	return slices.SortedFunc(maps.Values(c.clusters), byName)
}

// merged merges lists of clusters that are sorted by name. If several lists have
// the same name, the first one wins.
func merged(lists ...[]*ir.Cluster) []*ir.Cluster {
	var out []*ir.Cluster
	for _, l := range lists {
		if len(l) == 0 {
			continue
		}
		if len(out) == 0 {
			out = l
			continue
		}
		out = mergedTwo(out, l)
	}
	return out
}

func mergedTwo(a, b []*ir.Cluster) []*ir.Cluster {
	out := make([]*ir.Cluster, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch order := byName(a[0], b[0]); {
		case order <= 0:
			if out, a = append(out, a[0]), a[1:]; order == 0 {
				b = b[1:]
			}
		default:
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}
