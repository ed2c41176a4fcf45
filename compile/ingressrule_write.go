package compile

import (
	"cmp"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// ingress writes the configuration for IngressRules: port 80, and port 443 if a
// rule has a secret.
func (c *writer) ingress(config *ir.Config) {
	tables := map[int]*edgeTable{ingressHTTP: newEdgeTable(ingressHTTP), ingressHTTPS: newEdgeTable(ingressHTTPS)}
	for _, t := range tables {
		t.dotKept = c.plan.pilot().HostsAsWritten
	}
	for _, rule := range c.ingressRules() {
		t := tables[rule.table()]
		host := t.host(rule.authority, rule.ref, ingressDomains(rule))
		if c.domain.closedAtEdge(rule) {
			host.Routes = append(host.Routes, (&ir.Route{Operation: rule.ref.Name, Origins: []diag.Ref{rule.ref}}).Closed(rule.match()))
			continue
		}
		for _, planned := range upgradeByRules(c.domain.edgeRoutes(rule)) {
			c.needAll(planned.targets)
			host.Routes = append(host.Routes, c.atEdge(planned.route))
		}
	}
	for _, port := range []int{ingressHTTPS, ingressHTTP} { // In the order of their names.
		t := tables[port]
		if c.plan.pilot().IngressCatchAllLost {
			for _, host := range t.hosts {
				slices.SortStableFunc(host.Routes, func(a, b *ir.Route) int { return compareByPath(a.Match, b.Match) })
			}
		}
		c.plan.problems.Add(t.problems...)
		config.RouteTables = append(config.RouteTables, c.closed(t.routeTable()))
	}
	c.edgeListener(anyAddress, ingressHTTP, ir.Outbound, nil)
	if secret := c.plan.ingressSecret(); secret != "" {
		pair := c.plan.settings.IngressCertificate(secret)
		c.edgeListener(anyAddress, ingressHTTPS, ir.Outbound, serverTLS(pair.CertificateFile, pair.KeyFile))
	}
	c.close(config, [][]*ir.Cluster{c.sortedClusters()})
}

// ingressRules returns the rules in the order in which they match requests. The
// routes of one rule keep their author's order; Pilot sorted all routes.
func (c *writer) ingressRules() []*ingressRule {
	rules := c.plan.ingressRules.rules(&c.plan.reader)
	if c.plan.pilot().IngressCatchAllLost {
		return rules
	}
	return slices.SortedStableFunc(slices.Values(rules), func(a, b *ingressRule) int { return compareByPath(a.match(), b.match()) })
}

// ingressDomains returns the Host headers of the rule's authority. An authority
// with a port is a single Host header.
func ingressDomains(rule *ingressRule) []string {
	if _, _, err := net.SplitHostPort(rule.authority); err == nil || rule.authority == "*" {
		return []string{rule.authority}
	}
	host := strings.Trim(rule.authority, "[]")
	return []string{bracketed(host), net.JoinHostPort(host, strconv.Itoa(rule.table()))}
}

// closedAtEdge reports whether requests for the rule get 503.
func (v *viewpoint) closedAtEdge(rule *ingressRule) bool {
	svc := v.ingressService(rule)
	return rule.closed || svc == nil || ingressPort(rule, svc) == nil || v.withheld(rule.declared)
}

// edgeRoutes returns the routes of the rule's service that can match a request of
// the rule.
func (v *viewpoint) edgeRoutes(rule *ingressRule) []plannedRoute {
	if v.closedAtEdge(rule) {
		return nil
	}
	var out []plannedRoute
	svc := v.ingressService(rule)
	visible := visibleAtEdge(v.routesTo(svc, ingressPort(rule, svc)), ofNobody)
	for _, planned := range visible {
		if len(visible) > 1 && planned.route.Match.CatchAll() && v.pilot().IngressCatchAllLost {
			continue
		}
		if match, ok := narrowed(planned.route.Match, rule.path, rule.prefix); ok {
			route := *planned.route
			route.Match = match
			planned.route = &route
			out = append(out, planned)
		}
	}
	return out
}

// narrowed returns the match of requests that fit both m and the path or prefix. It
// returns false if there are none.
func narrowed(m ir.Match, path, prefix string) (ir.Match, bool) {
	switch {
	case path == "" && (m.IgnoreCase || m.Regex != ""):
		return withStart(m, prefix), true
	case path == "" && m.Path == "":
		if strings.HasPrefix(prefix, m.Prefix) {
			m.Prefix = prefix
		}
		return m, strings.HasPrefix(m.Prefix, prefix)
	case path == "":
		return m, strings.HasPrefix(m.Path, prefix)
	case m.Regex != "":
		whole, err := regexp.MatchString("^(?:"+m.Regex+")$", path)
		return withPath(m, path), err == nil && whole
	case m.IgnoreCase:
		begins := len(path) >= len(m.Prefix) && strings.EqualFold(path[:len(m.Prefix)], m.Prefix)
		return withPath(m, path), m.Path == "" && begins || m.Path != "" && strings.EqualFold(m.Path, path)
	case m.Path != "":
		return m, m.Path == path
	default:
		return withPath(m, path), strings.HasPrefix(path, m.Prefix)
	}
}

// withStart adds the condition that the path begins with the prefix.
func withStart(m ir.Match, prefix string) ir.Match {
	if prefix != "" && prefix != "/" {
		m.Headers = append(slices.Clone(m.Headers), ir.HeaderMatch{Name: ":path", Prefix: prefix})
	}
	return m
}

func withPath(m ir.Match, path string) ir.Match {
	m.Path, m.Prefix, m.Regex, m.IgnoreCase = path, "", "", false
	return m
}

// compareByPath sorts exact paths first, ascending, then regular expressions, then
// prefixes, with the longer of two prefixes that share a start first.
func compareByPath(a, b ir.Match) int {
	kind := func(m ir.Match) int {
		switch {
		case m.Path != "":
			return 0
		case m.Regex != "":
			return 1
		}
		return 2
	}
	return cmp.Or(
		cmp.Compare(kind(a), kind(b)),
		cmp.Compare(a.Path, b.Path),
		cmp.Compare(b.Prefix, a.Prefix),
	)
}

// atEdge returns a route as an edge proxy uses it.
func (c *writer) atEdge(route *ir.Route) *ir.Route {
	if route.Fault == nil || !c.plan.pilot().EdgeFaultsLost {
		return route
	}
	withoutFault := *route
	withoutFault.Fault = nil
	return &withoutFault
}

// edgeListener opens a port for callers from outside.
func (c *writer) edgeListener(ip string, port int, direction ir.Direction, tls *ir.ServerTLS, origins ...diag.Ref) {
	http := c.http(strconv.Itoa(port))
	http.UseRemoteAddress = true
	c.listen(&ir.Listener{
		IP: ip, Port: port, Bind: true, Direction: direction,
		HTTP: http, TLS: tls, Origins: origins,
	})
}

// httpALPN is the list of protocols that HTTP servers offer within TLS.
var httpALPN = []string{"h2", "http/1.1"}

func serverTLS(certificate, key string) *ir.ServerTLS {
	return &ir.ServerTLS{CertificateFile: certificate, KeyFile: key, ALPN: httpALPN}
}
