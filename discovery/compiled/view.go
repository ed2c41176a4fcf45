package compiled

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// View has the configuration that all proxies with one mesh.Traits.Key should have. Each Envoy version
// is encoded when the first proxy asks for it.
type View struct {
	// The view does not refer to its generation, because that would keep the whole old
	// snapshot in memory.
	Encoder  *Encoder
	Serial   int64  // of the generation it was compiled for
	Revision int64  // of that
	Since    int64  // of that
	Key      string // of its mesh.Traits
	Config   *ir.Config

	// Past is the compiler of a past view. It stays in memory as long as the view, so that
	// the memory of the view stays counted. It is nil for a view that was published here.
	Past any

	Until atomic.Int64 // the first revision that it does not show, 0 while no view took its place

	from           cached.Brief[map[diag.Ref]struct{}] // objects
	hosts          cached.Brief[map[string]struct{}]   // of services
	tables         cached.Brief[[]listenedTable]
	lastDifference atomic.Pointer[difference] // to the view before
	lastLeads      atomic.Pointer[leadsSince]

	v1 cached.Lazy[V1Answers]
	v3 cached.Lazy[V3Answers]

	onStreams    cached.Lazy[V3Answers]
	onStreamsNow atomic.Pointer[Streamed] // nil before the first stream
	ofProxyless  cached.Lazy[V3Answers]
	toProxyless  atomic.Pointer[Streamed] // of clients of gRPC, nil before the first
	streaming    sync.Mutex               // held to make either
	polled       polledNow
}

func NewView(g *Generation, key string, config *ir.Config) *View {
	return &View{Encoder: g.encoder, Serial: g.Serial, Revision: g.Mesh.Revision, Since: g.Since, Key: key, Config: config}
}

// address is the address that listeners are encoded for, or "" if all listeners are the
// same for every proxy. Only proxies beside a workload have an address of their own. The
// registry knows these addresses, so invented ones take no memory.
func (v *View) address(ip string) string {
	if slices.ContainsFunc(v.Config.Listeners, func(l *ir.Listener) bool { return l.IP == "" }) {
		return ip
	}
	return ""
}

func (v *View) EncodedV1(ip string) (*V1Answers, error) {
	made := false
	a, err := v.v1.Get(func() (a *V1Answers, err error) {
		made = true
		err = v.Encoder.Contain("v1", func() error { a, err = encodeV1(v, ip); return err })
		return a, err
	})
	if made {
		v.Encoder.found(v)
	}
	return a, err
}

func (v *View) EncodedV3(ip string) (*V3Answers, error) { return v.encode(&v.v3, encodeV3, ip) }

func (v *View) EncodedStreamed(ip string) (*V3Answers, error) {
	return v.encode(&v.onStreams, encodeStreamed, ip)
}

func (v *View) EncodedProxyless() (*V3Answers, error) {
	return v.encode(&v.ofProxyless, func(v *View, _ string) *V3Answers { return encodeProxyless(v) }, "")
}

func (v *View) encode(answers *cached.Lazy[V3Answers], encode func(*View, string) *V3Answers, ip string) (*V3Answers, error) {
	made := false
	a, err := answers.Get(func() (a *V3Answers, err error) {
		made = true
		err = v.Encoder.Contain("v3", func() error { a = encode(v, ip); return nil })
		return a, err
	})
	if made {
		v.Encoder.found(v)
	}
	return a, err
}

// Origins returns the objects in the configuration. They are collected at the first call.
func (v *View) Origins() map[diag.Ref]struct{} {
	return *v.from.Get(func() *map[diag.Ref]struct{} {
		all := map[diag.Ref]struct{}{}
		v.Config.EachOrigin(func(ref diag.Ref) { all[ref] = struct{}{} })
		return &all
	})
}

// Hosts returns the services whose endpoints are in the configuration, by the hosts in
// their keys (mesh.Service.KeyHost). The first call collects them.
func (v *View) Hosts() map[string]struct{} {
	return *v.hosts.Get(func() *map[string]struct{} {
		all := map[string]struct{}{}
		for _, c := range v.Config.Clusters {
			if c.EndpointKey != "" {
				all[mesh.ParseServiceKey(c.EndpointKey).Hostname] = struct{}{}
			}
		}
		return &all
	})
}

// Problems returns the problems that encoding has found so far, in all requested versions.
func (v *View) Problems() diag.List {
	var all diag.List
	if a := v.v1.Peek(); a != nil {
		all = append(all, a.problems.List()...)
	}
	for _, answers := range []*cached.Lazy[V3Answers]{&v.v3, &v.onStreams, &v.ofProxyless} {
		if a := answers.Peek(); a != nil {
			all = append(all, a.problems.List()...)
		}
	}
	return all
}

// StreamedListener encodes a listener in the form for proxies on streams.
func (v *View) StreamedListener(l *ir.Listener) *xds.Resource {
	return v.Encoder.V3.Listener(l, v3.Streamed)
}

// EachCluster visits the clusters of the view with the names of their resources.
func (v *View) EachCluster(visit func(name string, c *ir.Cluster)) {
	for _, c := range v.Config.Clusters {
		visit(envoy.ClusterName(c.Name), c)
	}
}

// HasTable reports whether the view has the route table, or listeners.
func (v *View) HasTable(name string) bool {
	return name == xds.ListenerType || slices.ContainsFunc(v.Config.RouteTables, func(t *ir.RouteTable) bool { return t.Name == name })
}

// TableNamed returns nil if the view has no such table or is nil.
func TableNamed(v *View, name string) *ir.RouteTable {
	if v == nil {
		return nil
	}
	i := slices.IndexFunc(v.Config.RouteTables, func(t *ir.RouteTable) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return v.Config.RouteTables[i]
}

func HostsOf(v *View, table string) []*ir.VirtualHost {
	for _, t := range v.Config.RouteTables {
		if t.Name == table {
			return t.VirtualHosts
		}
	}
	return nil
}
