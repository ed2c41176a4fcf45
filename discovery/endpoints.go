package discovery

import (
	"log/slog"
	"slices"

	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// endpointSets finds and keeps the members of registry clusters: the same for
// every proxy, unlike all else.
type endpointSets struct {
	mesh *mesh.Snapshot
	log  *slog.Logger
	kept *memo[*endpointSet]
	last *memo[*endpointSet] // of the generation before
}

// endpointSet is the members that one service key means, encoded once.
type endpointSet struct {
	key     string
	members []ir.Endpoint
	log     *slog.Logger

	v1Answer   lazy[Answer]
	v3Resource lazy[resource]
}

func newEndpointSets(g *generation, before *generation) endpointSets {
	sets := endpointSets{mesh: g.mesh, log: g.server.opts.Log, kept: newMemo[*endpointSet](g.server.opts.MaxProxies)}
	if before != nil {
		sets.last = before.endpoints.kept
	} else {
		sets.last = newMemo[*endpointSet](0)
	}
	return sets
}

// of never fails: a key that means nothing has no members. Such sets are not
// kept, for anybody can think of any number of them.
func (e *endpointSets) of(key string) *endpointSet {
	if s, ok := e.kept.get(key); ok {
		return s
	}
	s := &endpointSet{key: key, log: e.log}
	for _, i := range e.mesh.Endpoints(mesh.ParseServiceKey(key)) {
		s.members = append(s.members, ir.Endpoint{Host: i.Address, Port: i.EndpointPort, Zone: i.Zone, Weight: i.Weight})
	}
	if len(s.members) == 0 {
		return s
	}
	if old, ok := e.last.get(key); ok && slices.Equal(old.members, s.members) {
		s = old
	}
	return e.kept.put(key, s)
}

func (s *endpointSet) v1() (Answer, error) {
	a, err := s.v1Answer.get(func() (*Answer, error) {
		a, err := v1Answer(v1.Endpoints(s.members))
		return &a, err
	})
	if err != nil {
		return Answer{}, err
	}
	return *a, nil
}

// v3 is nil for a set that Envoy would refuse; the proxy then keeps what it
// has.
func (s *endpointSet) v3() *resource {
	r, _ := s.v3Resource.get(func() (*resource, error) {
		r, err := encode(EndpointType, s.key, v3.Endpoints(s.key, s.members))
		if err != nil {
			s.log.Error("endpoints not served", "key", s.key, "err", err)
		}
		return r, err
	})
	return r
}

// endpointKeys are the sets that a proxy may ask for.
func endpointKeys(c *ir.Config) []string {
	var keys []string
	for _, cluster := range c.Clusters {
		if cluster.Type == ir.Registry {
			keys = append(keys, cluster.EndpointKey)
		}
	}
	return keys
}
