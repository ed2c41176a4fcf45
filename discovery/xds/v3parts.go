package xds

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"runtime"
	"strings"
	"sync/atomic"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
)

// V3Parts has the parts of configurations in v3 form, each checked once and encoded once. A
// part that would make Envoy refuse the whole answer is closed. V3Parts does not keep the
// earlier form of the part: that form may allow requests that must no longer pass, and
// another replica may never have had it. A part that makes the server panic is closed too,
// so that the rest of the view is not lost.
type V3Parts struct {
	Contain  Contain
	clusters cached.Attached[ir.Cluster, v3.Source, *Resource]
	// lists of clusters, found by their beginning: most views share a list with others, and
	// with their last view.
	lists  cached.Attached[*ir.Cluster, clusterList, *Set]
	tables cached.Attached[ir.RouteTable, struct{}, *Resource]
	// hosts are found by whether their table is on demand too.
	hosts cached.Attached[ir.VirtualHost, bool, *host]
	// listeners have their address filled in.
	listeners cached.Attached[ir.Listener, v3.Source, *Resource]
	// proxylessHosts are virtual hosts, found by the name of their table too, and
	// proxylessClusters are clusters, both in the form for clients of gRPC.
	proxylessHosts    cached.Attached[ir.VirtualHost, string, *ProxylessHost]
	proxylessClusters cached.Attached[ir.Cluster, struct{}, *ProxylessCluster]
	secrets           cached.Attached[ir.Secret, struct{}, *Resource]

	Encoded atomic.Int64 // messages encoded so far
}

// Contain turns a panic into an error (Publisher.recoverPanic).
type Contain func(step string, do func() error) error

// host is an encoded virtual host. Without a fragment it is left out.
type host struct {
	*Fragment
	problems diag.Interned
	domains  []uint64 // their hashes
}

// encoder makes the message of a part. The message must not be nil.
type encoder func() (v3.Message, diag.List)

func (p *V3Parts) Cluster(c *ir.Cluster, from v3.Source) *Resource {
	if c.Type != ir.Registry && !c.TLS.UsesSecrets() && !c.MutualTLS.UsesSecrets() {
		from = v3.Source{} // It has all that it needs.
	}
	return p.clusters.Of(c, from, func() *Resource {
		message := func(c *ir.Cluster) encoder {
			return func() (v3.Message, diag.List) { return v3.Cluster(c, from) }
		}
		r := p.resource(ClusterType, envoy.ClusterName(c.Name), first(c.Origins), message(c), message(c.Closed()))
		if c.Type == ir.Registry {
			r.Endpoints = envoy.EndpointsName(c)
		}
		return r
	})
}

// clusterList identifies a list of clusters, together with its first cluster.
type clusterList struct {
	length int
	source v3.Source
}

func (p *V3Parts) ClusterSet(list []*ir.Cluster, source v3.Source) *Set {
	if len(list) == 0 {
		return NewSet(ClusterType, nil)
	}
	return p.lists.Of(&list[0], clusterList{len(list), source}, func() *Set {
		all := make([]*Resource, len(list))
		spread(len(all), func(i int) { all[i] = p.Cluster(list[i], source) })
		return NewSet(ClusterType, all)
	})
}

func (p *V3Parts) Secret(s *ir.Secret) *Resource {
	return p.secrets.Of(s, struct{}{}, func() *Resource {
		r := p.resource(SecretType, s.Name, first(s.Origins), func() (v3.Message, diag.List) { return v3.Secret(s), nil }, nil)
		r.shown = shownSecret(s)
		return r
	})
}

func (p *V3Parts) Listener(l *ir.Listener, from v3.Source) *Resource {
	return p.listeners.Of(l, from, func() *Resource {
		return p.resource(ListenerType, envoy.ListenerName(l), first(l.Origins), func() (v3.Message, diag.List) { return v3.Listener(l, from) }, nil)
	})
}

// resource encodes a part. If Envoy would refuse it, the result is its closed form, or
// nothing if there is none or Envoy would refuse that too.
func (p *V3Parts) resource(typeURL, name string, origin diag.Ref, open, closed encoder) *Resource {
	shell, problems, refused := p.encode(open, v3.Check)
	if refused == nil {
		r := newResource(typeURL, name, shell)
		r.origin, r.Problems = origin, intern(problems...)
		return r
	}
	if closed != nil {
		if shell, _, err := p.encode(closed, v3.Check); err == nil {
			r := newResource(typeURL, name, shell)
			r.origin, r.Problems = origin, intern(notServed(typeURL, name, origin, closedOutcome, refusedBecause(refused)))
			return r
		}
	}
	return leftOut(typeURL, name, origin, refused)
}

const closedOutcome = "is closed, requests get 503"

func refusedBecause(err error) string { return "would be refused by Envoy: " + err.Error() }

func leftOut(typeURL, name string, origin diag.Ref, refused error) *Resource {
	return &Resource{TypeURL: typeURL, Name: name, origin: origin,
		Problems: intern(notServed(typeURL, name, origin, "is left out", refusedBecause(refused)))}
}

// encode makes a message, checks it and encodes it.
func (p *V3Parts) encode(message encoder, check func(v3.Message) error) (f *Fragment, problems diag.List, err error) {
	runtime.Gosched() // There may be thousands of parts, and other requests wait.
	err = p.Contain("v3", func() error {
		m, found := message()
		if err := check(m); err != nil {
			return err
		}
		problems = found
		p.Encoded.Add(1)
		f, err = newFragment(m)
		return err
	})
	return f, problems, err
}

// Table splices a table from its virtual hosts. A problem of the whole table closes the
// whole table.
func (p *V3Parts) Table(t *ir.RouteTable) *Resource {
	return p.tables.Of(t, struct{}{}, func() *Resource {
		r, refused := p.splice(t)
		if refused == nil {
			return r
		}
		r, err := p.splice(t.Closed())
		if err != nil {
			return leftOut(RouteType, t.Name, diag.Ref{}, refused)
		}
		r.Problems = intern(notServed(RouteType, t.Name, diag.Ref{}, closedOutcome, refusedBecause(refused)))
		return r
	})
}

// PartialTable returns nil if Envoy would refuse the table.
func (p *V3Parts) PartialTable(t *ir.RouteTable) *Resource {
	r, err := p.splice(t)
	if err != nil {
		return nil
	}
	return r
}

func (p *V3Parts) splice(t *ir.RouteTable) (*Resource, error) {
	shell, _, err := p.encode(func() (v3.Message, diag.List) { return v3.RouteTable(t), nil }, v3.Check)
	if err != nil {
		return nil, err
	}
	all := make([]*host, len(t.VirtualHosts))
	fragments := make([]*Fragment, 0, len(all))
	var problems diag.Interned
	spread(len(all), func(i int) { all[i] = p.host(t.VirtualHosts[i], t.OnDemand) })
	for _, h := range all {
		problems = append(problems, h.problems...)
		if h.Fragment != nil {
			fragments = append(fragments, h.Fragment)
		}
	}
	if err := uniqueDomains(all); err != nil {
		return nil, err
	}
	r := newResource(RouteType, t.Name, shell, fragments...)
	r.Problems = problems
	return r, nil
}

// EndpointsEncoder is v3.Endpoints or, for clients of gRPC, v3.ProxylessEndpoints.
type EndpointsEncoder func(key string, members []ir.Endpoint) *endpointv3.ClusterLoadAssignment

// EncodeEndpoints encodes endpoints. They are not a part of a configuration, so the caller
// keeps the result.
func (p *V3Parts) EncodeEndpoints(key string, members []ir.Endpoint, encode EndpointsEncoder) (*Resource, error) {
	f, _, err := p.encode(func() (v3.Message, diag.List) { return encode(key, members), nil }, v3.Check)
	if err != nil {
		return nil, err
	}
	r := newResource(EndpointType, key, f)
	r.Empty = len(members) == 0
	return r, nil
}

// EmptyTable returns nil for a name that no table can have. Clients choose the names, so
// the result is not kept.
func (p *V3Parts) EmptyTable(name string) *Resource {
	r, err := p.splice(&ir.RouteTable{Name: name})
	if err != nil {
		return nil
	}
	return r
}

// MisdirectingTable is EmptyTable for a table that answers 421 to every request.
func (p *V3Parts) MisdirectingTable(name string) *Resource {
	host := &ir.VirtualHost{Name: "misdirected", Domains: []string{"*"}, Routes: []*ir.Route{{Response: ir.Misdirected()}}}
	r, err := p.splice(&ir.RouteTable{Name: name, IgnorePort: true, VirtualHosts: []*ir.VirtualHost{host}})
	if err != nil {
		return nil
	}
	return r
}

// host encodes a virtual host that v3.VirtualHost has checked.
func (p *V3Parts) host(h *ir.VirtualHost, onDemand bool) *host {
	return p.hosts.Of(h, onDemand, func() *host {
		out, encode := &host{}, v3.VirtualHost
		if onDemand {
			encode = v3.OnDemandHost
		}
		message := func(h *ir.VirtualHost) encoder {
			return func() (v3.Message, diag.List) {
				m, problems := encode(h)
				out.problems = intern(problems...)
				if m == nil {
					return nil, nil
				}
				out.domains = hashDomains(m.GetDomains())
				return m, nil
			}
		}
		f, _, err := p.encode(message(h), judged)
		if err != nil && !errors.Is(err, errNothing) {
			var refused error
			if f, _, refused = p.encode(message(h.Closed()), judged); refused != nil {
				f, out.domains = nil, nil
			}
			out.problems = intern(diag.Warn(diag.NotHonoured, h.Closed().Routes[0].Origins, "Envoy v3 answers 503 in place of virtual host %s: %v", h.Name, err)...)
		}
		out.Fragment = f
		return out
	})
}

// errNothing means that a part has no message.
var errNothing = errors.New("there is nothing to encode")

func judged(m v3.Message) error {
	if m == nil {
		return errNothing
	}
	return nil
}

var domainSeed = maphash.MakeSeed()

// hashDomains returns the hashes of domains, none of which is 0. Envoy compares domains
// without case.
func hashDomains(domains []string) []uint64 {
	out := make([]uint64, len(domains))
	for i, d := range domains {
		out[i] = max(1, maphash.String(domainSeed, strings.ToLower(d)))
	}
	return out
}

// uniqueDomains returns an error if two of the hosts have the same domain, or one has it
// twice. A table has thousands of domains, usually all different, so hashes are compared
// first.
func uniqueDomains(hosts []*host) error {
	n := 1
	for _, h := range hosts {
		n += 2 * len(h.domains)
	}
	slots := make([]uint64, 1<<bits.Len(uint(n)))
	for _, h := range hosts {
		for _, hash := range h.domains {
			at := hash % uint64(len(slots))
			for ; slots[at] != 0; at = (at + 1) % uint64(len(slots)) {
				if slots[at] == hash {
					return compareDomains(hosts)
				}
			}
			slots[at] = hash
		}
	}
	return nil
}

func compareDomains(hosts []*host) error {
	seen := map[string]bool{}
	for _, h := range hosts {
		if h.Fragment == nil {
			continue
		}
		for _, d := range h.Message().(*routev3.VirtualHost).GetDomains() {
			if d = strings.ToLower(d); seen[d] {
				return fmt.Errorf("domain %q must occur only once", d)
			}
			seen[d] = true
		}
	}
	return nil
}

func first(origins []diag.Ref) diag.Ref {
	if len(origins) == 0 {
		return diag.Ref{}
	}
	return origins[0]
}

// Len returns how many parts are kept.
func (p *V3Parts) Len() int {
	return p.clusters.Len() + p.tables.Len() + p.hosts.Len() + p.listeners.Len()
}
