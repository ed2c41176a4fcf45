package v1

import (
	"reflect"

	"github.com/pilot-api/pilot-api/ir"
)

// placed is a route with its position in a table.
type placed struct {
	*ir.Route
	host, index int
}

// clusterRoutes are the routes that send requests to a cluster.
type clusterRoutes map[string][]placed

func routesByCluster(t *ir.RouteTable) clusterRoutes {
	out := clusterRoutes{}
	for i, h := range t.VirtualHosts {
		for j, r := range h.Routes {
			if expressed, _ := expressible(r); expressed == r {
				out.add(placed{r, i, j})
			}
		}
	}
	return out
}

func (all clusterRoutes) add(r placed) {
	for _, c := range r.Clusters {
		if c.Weight > 0 {
			all[c.Name] = append(all[c.Name], r)
		}
	}
}

// bystander returns a route that the fault of r is not meant for, although its filter
// affects requests of that route: they go to the same cluster and may have the same
// headers. It returns nil if there is none.
func (all clusterRoutes) bystander(r placed) *ir.Route {
	for _, c := range r.Clusters {
		for _, other := range all[c.Name] {
			if !r.comesBefore(other) && !sameFault(r.Route, other.Route) && !exclude(r.Match.Headers, other.Match.Headers) {
				return other.Route
			}
		}
	}
	return nil
}

// comesBefore reports whether r, which has conditions on headers only, takes every request
// with these headers before the other route.
func (r placed) comesBefore(other placed) bool {
	return r.host == other.host && r.index <= other.index
}

// sameFault reports whether both routes have one filter.
func sameFault(a, b *ir.Route) bool {
	return reflect.DeepEqual(a.Fault, b.Fault) && reflect.DeepEqual(a.Match.Headers, b.Match.Headers)
}

// exclude reports whether no request has both sets of headers.
func exclude(a, b []ir.HeaderMatch) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Name == y.Name && x.Exact != "" && y.Exact != "" && x.Exact != y.Exact {
				return true
			}
		}
	}
	return false
}
