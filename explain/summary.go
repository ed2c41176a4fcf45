package explain

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// Summary is a configuration in tables.
type Summary struct {
	Clusters  []ClusterRow  `json:"clusters,omitempty"`
	Listeners []ListenerRow `json:"listeners,omitempty"`
	Routes    []RouteRow    `json:"routes,omitempty"`
	Endpoints []EndpointRow `json:"endpoints,omitempty"`
	Secrets   []SecretRow   `json:"secrets,omitempty"`
}

// SecretRow is the first certificate of a secret, or one of its authorities.
type SecretRow struct {
	Name string `json:"name"`
	Use  string `json:"use"` // "certificate" or "authority"
	credential.Summary
	Origins []diag.Ref `json:"origins,omitempty"`
}

// ClusterRow summarizes a cluster.
type ClusterRow struct {
	Name      string     `json:"name"`
	Type      string     `json:"type"`
	Endpoints int        `json:"endpoints"`
	Balancer  string     `json:"balancer,omitempty"`
	TLS       bool       `json:"tls,omitempty"`
	Origins   []diag.Ref `json:"origins,omitempty"`
}

// ListenerRow summarizes a listener.
type ListenerRow struct {
	Address   string `json:"address"`
	Direction string `json:"direction"`
	// Bound means that the listener opens its port. Others take captured
	// connections.
	Bound bool `json:"bound,omitempty"`
	// Takes says what it does with connections.
	Takes   string     `json:"takes"`
	Origins []diag.Ref `json:"origins,omitempty"`
}

// RouteRow is one routing decision, for requests or connections.
type RouteRow struct {
	Listener string     `json:"listener"`
	Host     string     `json:"host,omitempty"`
	Match    string     `json:"match"`
	To       string     `json:"to"`
	Name     string     `json:"name,omitempty"`
	With     string     `json:"with,omitempty"`
	Origins  []diag.Ref `json:"origins,omitempty"`
}

// EndpointRow is one endpoint of a cluster.
type EndpointRow struct {
	Cluster string `json:"cluster"`
	Address string `json:"address"`
	Zone    string `json:"zone,omitempty"`
	Weight  int    `json:"weight,omitempty"`
}

// Summary summarizes the proxy's whole configuration. Routes are in the order in
// which they are tried. Routes of unreachable listeners are left out.
func (p Proxy) Summary() *Summary {
	s := &Summary{}
	for _, c := range p.Config.Clusters {
		members := p.members(c)
		s.Clusters = append(s.Clusters, ClusterRow{
			Name: c.Name, Type: string(c.Type), Endpoints: len(members), Balancer: string(c.LoadBalancer), TLS: c.TLS != nil, Origins: c.Origins,
		})
		for _, e := range members {
			s.Endpoints = append(s.Endpoints, EndpointRow{Cluster: c.Name, Address: endpointText(e), Zone: e.Zone, Weight: e.Weight})
		}
	}
	for _, l := range p.Config.ListenersAt(p.IP) {
		s.Listeners = append(s.Listeners, ListenerRow{
			Address: l.Address(), Direction: string(l.Direction), Bound: l.Bind, Takes: takes(l), Origins: l.Origins,
		})
		s.Routes = append(s.Routes, p.routesOf(l)...)
	}
	for _, secret := range p.Config.Secrets {
		for _, c := range credential.Summaries(secret.CACertificates) {
			s.Secrets = append(s.Secrets, SecretRow{secret.Name, "authority", c, secret.Origins})
		}
		if chain := credential.Summaries(secret.Certificate); len(chain) > 0 {
			s.Secrets = append(s.Secrets, SecretRow{secret.Name, "certificate", chain[0], secret.Origins})
		}
	}
	return s
}

// Only returns a summary that has only the named tables; see Types.
func (s *Summary) Only(tables ...string) *Summary {
	out := &Summary{}
	for _, name := range tables {
		switch name {
		case "clusters":
			out.Clusters = s.Clusters
		case "listeners":
			out.Listeners = s.Listeners
		case "routes":
			out.Routes = s.Routes
		case "endpoints":
			out.Endpoints = s.Endpoints
		case "secrets":
			out.Secrets = s.Secrets
		}
	}
	return out
}

func takes(l *ir.Listener) string {
	switch {
	case l.UseOriginalDst:
		return "what is captured"
	case len(l.Chains) > 0:
		return takenBy(l.Chains)
	case l.HTTP != nil && l.HTTP.ForwardProxy:
		return "HTTP, as a proxy"
	case l.HTTP != nil && l.TLS != nil:
		return "HTTPS"
	case l.HTTP != nil:
		return "HTTP"
	case l.TLS != nil:
		return "TLS"
	}
	return "TCP"
}

// takenBy says how the chains of a listener choose.
func takenBy(chains []*ir.FilterChain) string {
	if slices.ContainsFunc(chains, func(c *ir.FilterChain) bool { return c.Transport != ir.AnyTransport }) {
		return "mutual TLS, or plain text"
	}
	return "TLS, by server name"
}

func (p Proxy) routesOf(l *ir.Listener) []RouteRow {
	rows := p.partRows(l.HTTP, l.TCP, nil, l.Origins)
	for _, c := range l.Chains {
		rows = append(rows, p.partRows(c.HTTP, c.TCP, c.ServerNames, c.Origins)...)
	}
	for i := range rows {
		rows[i].Listener = l.Address()
	}
	return rows
}

func (p Proxy) partRows(http *ir.HTTPListener, tcp *ir.TCPListener, names []string, origins []diag.Ref) []RouteRow {
	var rows []RouteRow
	if http != nil {
		for _, h := range anyLast(p.table(http).VirtualHosts) {
			host := strings.Join(longNames(h.Domains), ",")
			for _, r := range h.Routes {
				rows = append(rows, RouteRow{Host: host, Match: matchText(r.Match), To: toText(r), Name: r.Name, With: withText(r), Origins: r.Origins})
			}
		}
	}
	if tcp != nil {
		for _, r := range tcp.Routes {
			own := r.Origins
			if len(own) == 0 {
				own = origins
			}
			rows = append(rows, RouteRow{
				Host: strings.Join(names, ","), Match: tcpMatchText(r), To: clustersText(r.Clusters), Origins: own,
			})
		}
	}
	return rows
}

// anyLast moves the virtual host for any other domain to the end.
func anyLast(hosts []*ir.VirtualHost) []*ir.VirtualHost {
	last := func(h *ir.VirtualHost) int {
		if slices.Contains(h.Domains, "*") {
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(hosts), func(a, b *ir.VirtualHost) int { return last(a) - last(b) })
}

// longNames returns the domains of a virtual host without abbreviations of another
// domain, domains with a port and addresses.
func longNames(domains []string) []string {
	abbreviates := func(d string) bool {
		return slices.ContainsFunc(domains, func(other string) bool { return strings.HasPrefix(other, d+".") })
	}
	var out []string
	for _, d := range domains {
		name := d
		if at := strings.LastIndexByte(d, ':'); at > strings.LastIndexByte(d, ']') {
			name = d[:at]
		}
		if !abbreviates(name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	names := slices.DeleteFunc(slices.Clone(out), func(d string) bool {
		_, err := netip.ParseAddr(strings.Trim(d, "[]"))
		return err == nil
	})
	if len(names) > 0 {
		return names
	}
	return out
}

func toText(r *ir.Route) string {
	switch {
	case r.Redirect != nil:
		to := r.Redirect
		target := cmp.Or(to.Path, to.Prefix)
		if to.Host != "" {
			target = to.Host + target
		}
		if to.Scheme != "" {
			target = to.Scheme + "://" + target
		}
		return "redirect " + number(cmp.Or(to.Code, 301)) + prefixed(" ", target)
	case r.Response != nil:
		return "answer " + number(r.Response.Status)
	}
	return clustersText(r.Clusters)
}

func clustersText(clusters []ir.WeightedCluster) string {
	total := 0
	for _, w := range clusters {
		total += w.Weight
	}
	var out []string
	for _, w := range clusters {
		switch {
		case w.Weight == total:
			return w.Name
		case w.Weight > 0:
			out = append(out, percent(100*float64(w.Weight)/float64(total))+" "+w.Name)
		}
	}
	return strings.Join(out, ", ")
}

// withText describes what a route does to requests in addition to forwarding.
func withText(r *ir.Route) string {
	var out []string
	if r.Rewrite != nil {
		if r.Rewrite.Host != "" {
			out = append(out, "host "+r.Rewrite.Host)
		}
		if r.Rewrite.Path != "" {
			out = append(out, "path "+r.Rewrite.Path)
		}
		if re := r.Rewrite.Regex; re != nil {
			out = append(out, "path by "+re.Match)
		}
	}
	if r.Timeout > 0 {
		out = append(out, "timeout "+r.Timeout.String())
	}
	if retry := r.Retry; retry != nil && !retry.ByDefault && retry.Attempts > 0 {
		out = append(out, "retries "+number(retry.Attempts))
	}
	out = append(out, faultTexts(r.Fault)...)
	for _, m := range mirrorTexts(r.Mirrors) {
		out = append(out, "copies "+m)
	}
	if r.CORS != nil {
		out = append(out, "CORS")
	}
	if !r.RequestHeaders.Empty() || !r.ResponseHeaders.Empty() {
		out = append(out, "headers changed")
	}
	return strings.Join(out, ", ")
}
