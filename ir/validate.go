package ir

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Validate reports whether a Config keeps the promises of this package: every
// name refers to something, names are unique, of alternatives exactly one is
// set, numbers are in range. The error joins everything found, each with the
// place. A valid Config is one that the back-ends spell without Envoy refusing
// the answer; what one Envoy version cannot say is not judged here.
func Validate(c *Config) error {
	v := &validator{clusters: map[string]bool{}, tables: map[string]bool{}}
	v.require(c.Delay > 0 && c.RouteDelay > 0, "delays", "must be above 0, found %v and %v for routes", c.Delay, c.RouteDelay)
	for _, k := range c.Clusters {
		v.cluster(k)
	}
	for _, t := range c.RouteTables {
		v.unique(v.tables, "route table", t.Name)
		v.table("route table "+t.Name, t)
	}
	for _, l := range c.Listeners {
		v.listener(l)
	}
	return errors.Join(v.errs...)
}

// validator collects what is wrong, and the names to refer to.
type validator struct {
	clusters, tables map[string]bool
	errs             []error
}

func (v *validator) require(ok bool, at, format string, args ...any) {
	if !ok {
		v.errs = append(v.errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
	}
}

// unique adds a name to those seen.
func (v *validator) unique(seen map[string]bool, what, name string) {
	v.require(name != "", what, "must have a name")
	v.require(!seen[name], what+" "+name, "must be there only once")
	seen[name] = true
}

func (v *validator) knows(at, cluster string) {
	v.require(v.clusters[cluster], at, "must name one of the clusters, found %q", cluster)
}

func (v *validator) cluster(c *Cluster) {
	at := "cluster " + c.Name
	v.unique(v.clusters, "cluster", c.Name)
	v.require(c.ConnectTimeout > 0, at, "connect timeout must be above 0, found %v", c.ConnectTimeout)
	switch c.Type {
	case Registry:
		v.require(c.EndpointKey != "", at, "must have a key to ask endpoints by")
	case StaticHosts, StrictDNS:
		v.hosts(at, c)
	case OriginalDestination:
		v.require(len(c.Hosts) == 0, at, "goes where the connection went and must have no hosts, found %v", c.Hosts)
	default:
		v.require(false, at, "type must be registry, static, strict-dns or original-destination, found %q", c.Type)
	}
	if c.TLS != nil {
		v.require((c.TLS.CertificateFile == "") == (c.TLS.KeyFile == ""), at,
			"TLS must have both a certificate and a key file, or neither, found %+v", *c.TLS)
	}
}

func (v *validator) hosts(at string, c *Cluster) {
	seen := map[HostPort]bool{}
	for _, h := range c.Hosts {
		v.require(!seen[h], at, "host %v must be there only once", h)
		seen[h] = true
		v.require(validPort(h.Port), at, "port of a host must be 1 to 65535, found %v", h)
		if c.Type == StaticHosts {
			_, err := netip.ParseAddr(h.Host)
			v.require(err == nil, at, "host must be an IP address, found %q", h.Host)
		}
	}
}

func (v *validator) listener(l *Listener) {
	at := "listener " + l.Address()
	v.require(validPort(l.Port), at, "port must be 1 to 65535")
	v.require(count(l.HandOff, l.HTTP != nil, l.TCP != nil) == 1, at, "must be exactly one of hand-off, HTTP and TCP")
	if h := l.HTTP; h != nil {
		v.require((h.Inline != nil) != (h.Table != ""), at, "must have a table inline or the name of one, and not both")
		v.require(h.Inline != nil || v.tables[h.Table], at, "must name one of the route tables, found %q", h.Table)
		if h.Inline != nil {
			v.table(at, h.Inline)
		}
	}
	if l.TCP != nil {
		for _, r := range l.TCP.Routes {
			v.tcpRoute(at, r)
		}
	}
}

func (v *validator) tcpRoute(at string, r TCPRoute) {
	v.knows(at, r.Cluster)
	for _, d := range r.Destinations {
		_, err := ParseDestination(d)
		v.require(err == nil, at, "%v", err)
	}
}

func (v *validator) table(at string, t *RouteTable) {
	names, domains := map[string]bool{}, map[string]bool{}
	for _, h := range t.VirtualHosts {
		v.unique(names, at+": virtual host", h.Name)
		host := fmt.Sprintf("%s: virtual host %s", at, h.Name)
		v.require(len(h.Domains) > 0, host, "must have a domain")
		for _, d := range h.Domains {
			// Envoy compares them without case.
			v.unique(domains, at+": domain", strings.ToLower(d))
		}
		for i, r := range h.Routes {
			v.route(fmt.Sprintf("%s: route %d", host, i), r)
		}
	}
}

func validPort(n int) bool { return n >= 1 && n <= 65535 }

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
