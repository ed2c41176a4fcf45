package compiled

import (
	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// endpointSets finds the members of registry clusters. Unlike all other configuration,
// these are the same for every proxy.
type endpointSets struct {
	mesh    *mesh.Snapshot
	encoder *Encoder
}

// endpointSet has the members that one service key means, encoded once.
type endpointSet struct {
	key     string
	members []ir.Endpoint
	encoder *Encoder

	v1Answer   cached.Lazy[xds.Answer]
	v3Resource cached.Lazy[xds.Resource]
	proxyless  cached.Lazy[xds.Resource]
}

// Of returns the members of a key. It never fails: an unknown key has no members. The
// result is attached to the service of the key, and is kept until that service changes.
// Sets without members are not kept, because a client can invent any number of keys.
func (e *endpointSets) Of(key string) *endpointSet {
	_, serviceKey := envoy.ParseEndpointsName(key)
	parsed := mesh.ParseServiceKey(serviceKey)
	create := func() *endpointSet {
		return &endpointSet{key: key, encoder: e.encoder, members: MembersOf(e.mesh, key)}
	}
	service, kept := e.mesh.ServiceOfKey(parsed.Hostname), &e.encoder.Endpoints
	if service != nil && kept.Has(service, key) {
		return kept.Of(service, key, create)
	}
	s := create()
	if len(s.members) == 0 {
		return s
	}
	return kept.Of(service, key, func() *endpointSet { return s })
}

// MembersOf returns the instances of a key in a snapshot, in the order that the key states.
func MembersOf(s *mesh.Snapshot, name string) []ir.Endpoint {
	order, key := envoy.ParseEndpointsName(name)
	return order.Arranged(compile.Members(s, key))
}

// Members returns the members of the set.
func (e *endpointSets) Members(key string) []ir.Endpoint { return e.Of(key).members }

func (s *endpointSet) V1() (xds.Answer, error) {
	a, err := s.v1Answer.Get(func() (*xds.Answer, error) {
		a, err := xds.EncodeV1(v1.Endpoints(s.members))
		return &a, err
	})
	if err != nil {
		return xds.Answer{}, err
	}
	return *a, nil
}

// V3 returns the encoded set. It is nil if Envoy would refuse the set; the proxy then keeps
// what it has.
func (s *endpointSet) V3() *xds.Resource { return s.encoded(&s.v3Resource, v3.Endpoints) }

// forProxyless is V3 for clients of gRPC.
func (s *endpointSet) forProxyless() *xds.Resource {
	return s.encoded(&s.proxyless, v3.ProxylessEndpoints)
}

func (s *endpointSet) encoded(as *cached.Lazy[xds.Resource], encode xds.EndpointsEncoder) *xds.Resource {
	r, _ := as.Get(func() (*xds.Resource, error) {
		r, err := s.encoder.V3.EncodeEndpoints(s.key, s.members, encode)
		if err != nil {
			s.encoder.Log.Error("endpoints not served", "key", s.key, "err", err)
		}
		return r, err
	})
	return r
}

// EndpointKeys returns the keys of the endpoint sets that a proxy with these clusters may
// ask for.
func EndpointKeys(clusters []*ir.Cluster) []string {
	var keys []string
	for _, c := range clusters {
		if c.Type == ir.Registry {
			keys = append(keys, envoy.EndpointsName(c))
		}
	}
	return keys
}
