package evaluator_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/ir"
)

var alike = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.AddrPort{})}

// differences are those between what the two versions are told. A request may
// go another way in v1 than in v3 only where a back-end complained: about an
// object behind a route of the virtual host that takes the request, or, as to
// faults alone, behind a route to the same cluster.
func (s *spelled) differences(requests []evaluator.Request) []string {
	var out []string
	s.forgetLeftOut()
	s.sameDefaults()
	if d := cmp.Diff(traits(s.v1), traits(s.v3), alike); d != "" {
		out = append(out, "listeners (-v1 +v3):\n"+d)
	}
	if d := cmp.Diff(withoutBlackHole(s.v1.Clusters), withoutBlackHole(s.withoutBounds(s.unasked(s.v3.Clusters))), alike); d != "" {
		out = append(out, "clusters (-v1 +v3):\n"+d)
	}
	for _, r := range requests {
		one, three := answered(s.v1.Evaluate(r)), s.v3Answered(r)
		if d := cmp.Diff(one, three, alike); d != "" && !s.excused(one, three) && !s.excusedTCP(r, one, three) && !refusesDots(one, three) {
			out = append(out, fmt.Sprintf("request %+v (-v1 +v3):\n%s", r, d))
		}
	}
	return out
}

// refusesDots reports whether v3 refuses a request whose rewritten path has a segment of dots. v1
// has no guard: its paths are never normal (docs/decisions/010-fail-closed.md).
func refusesDots(one, three evaluator.Outcome) bool {
	path, _, _ := strings.Cut(one.Path, "?")
	segments := strings.Split(path, "/")
	return three.Status == http.StatusBadRequest && (slices.Contains(segments, ".") || slices.Contains(segments, ".."))
}

// sameDefaults has v1 ignore the ports of Host headers where v3 does, and refuse
// those that are no host, as it has no words for that, and v3 do what v1 does where it has none either: upgrade
// connections only where a route says so, and try again at any host.
func (s *spelled) sameDefaults() {
	for i, l := range s.v3.Listeners {
		if l.HTTP == nil && s.complainedStream(l.Name) {
			l.Idle, l.Age = 0, 0
		}
		if l.HTTP != nil && i < len(s.v1.Listeners) && s.v1.Listeners[i].HTTP != nil {
			own := s.v1.Listeners[i].HTTP
			own.IgnorePort, own.Hosts = l.HTTP.IgnorePort, l.HTTP.Hosts
			forAnyPort(own)
			l.HTTP.WebSockets = false
			anyHost(l.HTTP)
		}
	}
}

// forAnyPort has v1 pass on requests for unknown hosts whatever port they name:
// it closes those for another port than the listener's, which may be for a host
// that it knows (TestPortsOfUnknownHosts).
func forAnyPort(h *evaluator.HTTP) {
	for _, host := range h.VirtualHosts {
		if host.Name == "allow_any" {
			host.Routes[0].Headers = nil
		}
	}
}

// anyHost tries again wherever v1 does: to prefer others is a wish.
func anyHost(h *evaluator.HTTP) {
	for _, host := range h.VirtualHosts {
		for _, r := range host.Routes {
			if r.Retry != nil {
				r.Retry.OtherHosts = false
			}
			if r.Operation == "default-route" {
				r.Retry = nil
			}
		}
	}
}

// complainedStream reports whether there was a complaint about the objects behind
// a listener that closes connections which are quiet or old.
func (s *spelled) complainedStream(listener string) bool {
	return slices.ContainsFunc(s.config.ListenersAt(s.ip), func(l *ir.Listener) bool {
		return envoy.ListenerName(l) == listener && slices.ContainsFunc(l.Origins, func(o diag.Ref) bool { return s.complaints[o] })
	})
}

// blackHole is where v1 sends what is closed: it has no answers of its own.
const blackHole = "BlackHoleCluster"

func withoutBlackHole(clusters map[string]*evaluator.Cluster) map[string]*evaluator.Cluster {
	out := maps.Clone(clusters)
	if hole := out[blackHole]; hole != nil && len(hole.Endpoints) == 0 {
		delete(out, blackHole)
	}
	return out
}

// unasked has v3 wait for connections as long as v1 does, balance and limit as v1
// does, where nobody said how: each has its own defaults.
func (s *spelled) unasked(clusters map[string]*evaluator.Cluster) map[string]*evaluator.Cluster {
	out := maps.Clone(clusters)
	for _, c := range s.config.Clusters {
		name := envoy.ClusterName(c.Name)
		one, three := s.v1.Clusters[name], *out[name]
		if c.ConnectTimeout == 0 {
			three.ConnectTimeout = time.Second
		}
		if c.LoadBalancer == ir.BalancerByDefault && three.Balancer == "least_request" && one != nil {
			three.Balancer = "round_robin"
		}
		if c.CircuitBreaker == nil && one != nil {
			three.Limits = one.Limits
		}
		out[name] = &three
	}
	return out
}

// withoutBounds are the clusters with the ejections that v1 knows, and of hosts
// that a cluster lists their addresses, where it complained of more.
func (s *spelled) withoutBounds(clusters map[string]*evaluator.Cluster) map[string]*evaluator.Cluster {
	out := maps.Clone(clusters)
	for _, c := range s.config.Clusters {
		name := envoy.ClusterName(c.Name)
		complained := slices.ContainsFunc(c.Origins, func(o diag.Ref) bool { return s.complaints[o] })
		if complained && len(out[name].Beyond) > 0 {
			sayable := *out[name]
			sayable.Beyond = nil
			if c.Connections.SameProtocol { // v1 calls in that of the port.
				sayable.HTTP2, sayable.MaxStreams = c.HTTP2, 0
				if c.HTTP2 {
					sayable.MaxStreams = c.Connections.MaxStreams
				}
			}
			out[name] = &sayable
		}
		if c.Hash != nil && complained { // v1 has another way to pick one.
			picked := *out[name]
			if picked.Balancer, picked.Ring = "random", 0; c.Hash.Key.Header != "" {
				picked.Balancer, picked.Ring = "ring_hash", c.Hash.MinimumRing
			}
			out[name] = &picked
		}
		if complained && (c.DestinationPort > 0 || unverifiable(c.TLS)) && len(s.v1.Clusters[name].Endpoints) == 0 {
			out[name] = s.v1.Clusters[name] // v1 has nobody there, and said so.
			continue
		}
		if complained && c.TLS != nil && c.TLS.AutoSNI { // v1 goes by one name.
			named, tls := *out[name], *out[name].TLS
			if tls.AutoSAN {
				tls.SubjectAltNames = []string{tls.SNI}
			}
			tls.AutoSNI, tls.AutoSAN, named.TLS = false, false, &tls
			out[name] = &named
		}
		if complained && out[name].Outlier != nil {
			unbounded, outlier := *out[name], *out[name].Outlier
			outlier.Panic, outlier.Unbounded, unbounded.Outlier = 50, true, &outlier
			out[name] = &unbounded
		}
		if c.Order != nil && (complained || c.Localities.ByDefault) { // v1 has no order.
			unordered := *out[name]
			unordered.Endpoints = s.v1.Clusters[name].Endpoints
			out[name] = &unordered
		} else if len(c.Hosts) > 0 && (complained || alikeHosts(c.Hosts)) {
			listed := *out[name]
			listed.Endpoints = addresses(listed.Endpoints)
			out[name] = &listed
		}
	}
	return out
}

// unverifiable reports whether v1 cannot find out about endpoints what it must, or
// cannot be told the secret for it.
func unverifiable(t *ir.ClientTLS) bool {
	return t != nil && (t.CRLFile != "" || t.AutoSAN && t.SNI == "" || t.UsesSecrets())
}

// alikeHosts reports whether each host gets as many requests as any other.
func alikeHosts(hosts []ir.Endpoint) bool {
	return !slices.ContainsFunc(hosts, func(h ir.Endpoint) bool {
		return h.Zone != hosts[0].Zone || max(h.Weight, 1) != max(hosts[0].Weight, 1)
	})
}

// addresses are the endpoints as v1 lists them.
func addresses(endpoints []evaluator.Endpoint) []evaluator.Endpoint {
	var out []evaluator.Endpoint
	for _, e := range endpoints {
		out = append(out, evaluator.Endpoint{Address: e.Address, Weight: 1})
	}
	return out
}

// answered tells an outcome that ends in the black hole, or that v1 has no other
// answer for, by what the caller sees.
func answered(o evaluator.Outcome) evaluator.Outcome {
	if o.VirtualHost == "block_all" {
		return evaluator.Outcome{Listener: o.Listener, VirtualHost: o.VirtualHost, Status: http.StatusServiceUnavailable}
	}
	if o.TCP || len(o.Shares) != 1 || o.Shares[0].Cluster != blackHole {
		return o
	}
	return evaluator.Outcome{Listener: o.Listener, VirtualHost: o.VirtualHost, Operation: o.Operation, Status: http.StatusServiceUnavailable}
}

// v3Answered is the outcome in v3, but for the one answer of its own to what
// nobody declared: it is behind no object, so it has no operation.
func (s *spelled) v3Answered(r evaluator.Request) evaluator.Outcome {
	o := s.v3.Evaluate(r)
	if o.VirtualHost == "block_all" {
		return answered(o)
	}
	if o.Status == http.StatusBadGateway && o.Operation == "" {
		o.Status = http.StatusServiceUnavailable
	}
	return o
}

func traits(p *evaluator.Proxy) []evaluator.Traits {
	var out []evaluator.Traits
	for _, l := range p.Listeners {
		l.OtherTLS = "" // v1 has no word for it.
		out = append(out, l.Traits)
	}
	return out
}

// forgetLeftOut closes in v3 the ports that v1 had to leave closed, with a
// complaint about who opens them.
func (s *spelled) forgetLeftOut() {
	s.v3.Listeners = slices.DeleteFunc(s.v3.Listeners, func(three *evaluator.Listener) bool {
		there := slices.ContainsFunc(s.v1.Listeners, func(one *evaluator.Listener) bool { return one.Address == three.Address })
		return !there && slices.ContainsFunc(s.config.Listeners, func(l *ir.Listener) bool {
			return l.Port == int(three.Address.Port()) && slices.ContainsFunc(l.Origins, func(o diag.Ref) bool { return s.complaints[o] })
		})
	})
}

func (s *spelled) excused(one, three evaluator.Outcome) bool {
	if cmp.Equal(withoutFaults(one), withoutFaults(three), alike) {
		return s.complainedFault(one)
	}
	return one.VirtualHost == three.VirtualHost && s.complainedHost(one.VirtualHost)
}

// excusedTCP: where v1 does not see which name a client asks for, it is taken to
// be one that leads somewhere; and there may be complaints about those who have
// routes to the port.
func (s *spelled) excusedTCP(r evaluator.Request, one, three evaluator.Outcome) bool {
	for _, l := range s.config.ListenersAt(s.ip) {
		if l.TCP == nil || l.Port != int(r.Destination.Port()) {
			continue
		}
		for _, route := range l.TCP.Routes {
			if route.Assumed && r.ServerName == "" && one.TCP {
				return true
			}
			for _, origin := range slices.Concat(l.Origins, route.Origins) {
				if s.complaints[origin] {
					return true
				}
			}
		}
	}
	return false
}

func withoutFaults(o evaluator.Outcome) evaluator.Outcome {
	o.Shares = slices.Clone(o.Shares)
	for i := range o.Shares {
		o.Shares[i].Faults = nil
	}
	return o
}

func (s *spelled) complainedHost(name string) bool {
	return s.anyRoute(func(h *ir.VirtualHost, r *ir.Route) bool { return h.Name == name })
}

func (s *spelled) complainedFault(o evaluator.Outcome) bool {
	return s.anyRoute(func(_ *ir.VirtualHost, r *ir.Route) bool {
		return r.Fault != nil && slices.ContainsFunc(r.Clusters, func(w ir.WeightedCluster) bool {
			return slices.ContainsFunc(o.Shares, func(share evaluator.Share) bool { return share.Cluster == w.Name })
		})
	})
}

// anyRoute reports whether there was a complaint about the object behind a route
// that fits.
func (s *spelled) anyRoute(fits func(*ir.VirtualHost, *ir.Route) bool) bool {
	tables := slices.Clone(s.config.RouteTables)
	for _, l := range s.config.Listeners {
		if l.HTTP != nil && l.HTTP.Inline != nil {
			tables = append(tables, l.HTTP.Inline)
		}
	}
	for _, t := range tables {
		for _, h := range t.VirtualHosts {
			for _, r := range h.Routes {
				complained := slices.ContainsFunc(r.Origins, func(o diag.Ref) bool { return s.complaints[o] })
				if complained && fits(h, r) {
					return true
				}
			}
		}
	}
	return false
}
