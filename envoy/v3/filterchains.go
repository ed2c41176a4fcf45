package v3

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// taker accepts the connections that fit and that no earlier taker accepts.
type taker struct {
	names        []string       // in small letters; none: any
	destinations []netip.Prefix // everywhere: any
	port         int            // 0: any
	begins       beginning
	filters      []*listenerv3.Filter
	tls          *ir.ServerTLS
	what         string // where the connections go, for people
	origins      []diag.Ref
	taken        []matched
}

// beginning is what connections begin with. Connections of different beginnings never compete:
// Envoy selects the most precise one of those that fit.
type beginning struct {
	transport ir.Transport
	alpn      string // joined by commas
}

// matched are the connections of a filter chain: all pairs of its names and destinations.
type matched struct {
	names        []string
	port         int
	destinations []netip.Prefix
	begins       beginning
}

// reach is a destination at a port, for connections of a beginning; 0 is any port.
type reach struct {
	to     netip.Prefix
	port   int
	begins beginning
}

// everywhere is the destination of a taker without destinations.
var everywhere netip.Prefix

// filterChains returns the filter chains of a listener. In the IR the first taker that
// fits applies. Envoy selects the port, then the most specific destination, then the most
// specific name, and never goes back. It refuses two chains for the same connections. So
// a later taker does not get what an earlier one has, and a destination within another one
// also has the chains of the other, as far as they come first.
func filterChains(l *ir.Listener, from Source) ([]*listenerv3.FilterChain, diag.List) {
	b := chainBuilder{listener: l, from: from}
	b.gather()
	b.share()
	var out []*listenerv3.FilterChain
	for _, t := range b.takers {
		for _, m := range t.taken {
			out = append(out, &listenerv3.FilterChain{
				FilterChainMatch: chainMatcher(m), Filters: t.filters, TransportSocket: serverTLS(t.tls, b.from),
			})
		}
	}
	return out, b.problems
}

type chainBuilder struct {
	listener *ir.Listener
	from     Source
	takers   []*taker
	problems diag.List
}

func (b *chainBuilder) warn(reason diag.Reason, origins []diag.Ref, format string, args ...any) {
	if len(origins) == 0 {
		origins = b.listener.Origins
	}
	b.problems = append(b.problems, diag.Warn(reason, origins, format, args...)...)
}

func (b *chainBuilder) gather() {
	l := b.listener
	chains := l.Chains
	if len(chains) == 0 {
		chains = []*ir.FilterChain{{HTTP: l.HTTP, TCP: l.TCP, TLS: l.TLS, Origins: l.Origins}}
	}
	for _, c := range chains {
		begins := beginning{c.Transport, strings.Join(c.ALPN, ",")}
		switch {
		case c.HTTP != nil:
			manager, problems := connectionManager(c.HTTP, c.TLS != nil, b.from)
			b.problems = append(b.problems, problems...)
			b.takers = append(b.takers, &taker{
				names: lowered(c.ServerNames), destinations: []netip.Prefix{everywhere}, begins: begins, tls: c.TLS, origins: c.Origins,
				filters: []*listenerv3.Filter{networkFilter(httpConnectionManager, manager)}, what: "route table " + c.HTTP.Table,
			})
		case c.TCP != nil:
			for _, r := range c.TCP.Routes {
				b.takers = append(b.takers, &taker{
					names: lowered(slices.Concat(c.ServerNames, r.ServerNames)), destinations: b.destinations(r), port: r.Port, begins: begins, tls: c.TLS, origins: r.Origins,
					filters: tcpFilters(c.TCP, r), what: goal(r.Clusters),
				})
			}
		}
	}
}

// lowered returns names in the form in which Envoy compares them.
func lowered(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, strings.ToLower(name))
	}
	return out
}

// destinations of a route that can be read.
func (b *chainBuilder) destinations(r ir.TCPRoute) []netip.Prefix {
	if len(r.Destinations) == 0 {
		return []netip.Prefix{everywhere}
	}
	var out []netip.Prefix
	for _, d := range r.Destinations {
		p, err := ir.ParseDestination(d)
		if err != nil {
			b.warn(diag.NotHonoured, r.Origins, "%s is without a destination in Envoy v3: %v", goal(r.Clusters), err)
			continue
		}
		out = append(out, p)
	}
	return out
}

// share gives each taker the connections that no earlier one has.
func (b *chainBuilder) share() {
	by := map[reach][]int{}
	var all []reach
	for i, t := range b.takers {
		for _, to := range t.destinations {
			p := reach{to, t.port, t.begins}
			if by[p] == nil {
				all = append(all, p)
			}
			if last := len(by[p]) - 1; last < 0 || by[p][last] != i {
				by[p] = append(by[p], i)
			}
		}
	}
	for _, p := range all {
		b.shareAt(p, by)
	}
}

// shareAt distributes the connections for one destination.
func (b *chainBuilder) shareAt(p reach, by map[reach][]int) {
	type kept struct {
		taker int
		names []string
	}
	var keeps []kept
	taken := owners{}
	ownKept := false
	for _, i := range takersAt(p, by) {
		t := b.takers[i]
		names, lost := taken.take(t)
		own := slices.Contains(by[p], i)
		if own {
			b.reportLost(t, p, lost)
		}
		if len(names) == 0 && (len(t.names) > 0 || len(lost) > 0) {
			continue
		}
		keeps = append(keeps, kept{i, names})
		ownKept = ownKept || own
	}
	if !ownKept { // The wider destination does the same.
		return
	}
	for _, k := range keeps {
		b.takers[k.taker].add(k.names, p)
	}
}

// takersAt returns the takers with a destination that contains all of p, in order.
func takersAt(p reach, by map[reach][]int) []int {
	var out []int
	for _, port := range slices.Compact([]int{p.port, 0}) {
		out = append(out, by[reach{everywhere, port, p.begins}]...)
		for bits := 0; p.to != everywhere && bits <= p.to.Bits(); bits++ {
			out = append(out, by[reach{netip.PrefixFrom(p.to.Addr(), bits).Masked(), port, p.begins}]...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// add adds a destination to those with the same names.
func (t *taker) add(names []string, p reach) {
	for i, m := range t.taken {
		if slices.Equal(m.names, names) && m.port == p.port && m.destinations[0] != everywhere && p.to != everywhere {
			t.taken[i].destinations = append(m.destinations, p.to)
			return
		}
	}
	t.taken = append(t.taken, matched{names, p.port, []netip.Prefix{p.to}, t.begins})
}

// owners has the takers of the names for one destination; "" is every name.
type owners map[string]*taker

// take gives a taker the names that are left. It also returns the names that it loses to
// takers with another goal.
func (o owners) take(t *taker) (names []string, lost map[string]*taker) {
	lost = map[string]*taker{}
	wanted := t.names
	if len(wanted) == 0 {
		wanted = []string{""}
	}
	for _, name := range wanted {
		if owner := o.of(name); owner != nil {
			lost[name] = owner
			continue
		}
		o[name] = t
		if name != "" {
			names = append(names, name)
		}
	}
	return names, lost
}

// of returns the taker of a name, or of a wildcard that covers it.
func (o owners) of(name string) *taker {
	if owner := o[""]; owner != nil {
		return owner
	}
	if owner := o[name]; owner != nil || name == "" {
		return owner
	}
	rest := strings.TrimPrefix(name, "*.")
	if rest == name {
		_, rest, _ = strings.Cut(name, ".")
	} else {
		_, rest, _ = strings.Cut(rest, ".")
	}
	for ; rest != ""; _, rest, _ = strings.Cut(rest, ".") {
		if owner := o["*."+rest]; owner != nil {
			return owner
		}
	}
	return nil
}

// reportLost reports connections that another taker has.
func (b *chainBuilder) reportLost(t *taker, p reach, lost map[string]*taker) {
	names := t.names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		if owner := lost[name]; owner != nil && owner.what != t.what {
			b.warn(diag.Conflict, t.origins, "connections to %s go to %s already, %s gets none of them", describe(name, p.to, cmp.Or(p.port, b.listener.Port)), owner.what, t.what)
		}
	}
}

func describe(name string, p netip.Prefix, port int) string {
	out := fmt.Sprintf("port %d", port)
	if p != everywhere {
		out = fmt.Sprintf("%s on %s", p, out)
	}
	if name != "" {
		out = fmt.Sprintf("%s at %s", name, out)
	}
	return out
}

// chainMatcher returns nil for all connections.
func chainMatcher(m matched) *listenerv3.FilterChainMatch {
	out := &listenerv3.FilterChainMatch{DestinationPort: positive(m.port), ServerNames: withFinalDots(m.names)}
	for _, p := range m.destinations {
		if p == everywhere {
			break
		}
		out.PrefixRanges = append(out.PrefixRanges, &corev3.CidrRange{
			AddressPrefix: p.Addr().String(),
			PrefixLen:     wrapperspb.UInt32(uint32(p.Bits())),
		})
	}
	out.TransportProtocol = transportProtocols[m.begins.transport]
	if m.begins.alpn != "" {
		out.ApplicationProtocols = strings.Split(m.begins.alpn, ",")
	}
	if m.port == 0 && len(out.ServerNames) == 0 && len(out.PrefixRanges) == 0 && out.TransportProtocol == "" {
		return nil
	}
	return out
}

var transportProtocols = map[ir.Transport]string{ir.OverTLS: "tls", ir.PlainText: "raw_buffer"}

// withFinalDots returns the names, each also with a final dot. Envoy compares server names
// as clients send them, and example.com. is the same host as example.com.
func withFinalDots(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, name, name+".")
	}
	return out
}

// inspectNames makes Envoy read whether clients begin TLS and which server name they ask for,
// if it matters. A client that sends nothing counts as one without TLS, if connections
// without TLS lead somewhere: in its protocol the server may speak first.
func inspectNames(out *listenerv3.Listener) {
	named, unnamed := false, false
	for _, c := range out.GetFilterChains() {
		match := c.GetFilterChainMatch()
		has := len(match.GetServerNames()) > 0 || match.GetTransportProtocol() == transportProtocols[ir.OverTLS]
		named, unnamed = named || has, unnamed || !has
	}
	if named {
		out.ListenerFilters = []*listenerv3.ListenerFilter{{
			Name: tlsInspector, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: inspecting},
		}}
		out.ContinueOnListenerFiltersTimeout = unnamed
	}
}

const tlsInspector = "envoy.filters.listener.tls_inspector"

var inspecting = fix(&tlsinspectorv3.TlsInspector{})
