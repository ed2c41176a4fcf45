package meshgen

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/ir"
)

// Requests returns requests for a configuration: for every listener, virtual host and
// route some that match, and some that fail one condition. They are in absolute form only
// where v1 is configured to accept that. v3 always accepts it.
func Requests(c *ir.Config, ip string) []evaluator.Request {
	tables := map[string]*ir.RouteTable{}
	for _, t := range c.RouteTables {
		tables[t.Name] = t
	}
	out := connections("192.0.2.1", 80)
	for _, l := range c.ListenersAt(ip) {
		address := l.IP
		if address == "0.0.0.0" {
			address = "10.99.0.1"
		}
		entries := connections(address, l.Port)
		if l.HTTP != nil && l.HTTP.AbsoluteURLs {
			entries = append(entries, evaluator.Request{Destination: entries[0].Destination, AbsoluteForm: true})
		}
		if l.TCP != nil {
			out = append(out, tcpRequests(l)...)
		}
		out = append(out, chainRequests(l)...)
		if l.HTTP != nil {
			table := l.HTTP.Inline
			if table == nil {
				table = tables[l.HTTP.Table]
			}
			for _, h := range table.VirtualHosts {
				for _, r := range hostRequests(h) {
					out = append(out, through(entries, r)...)
				}
			}
		}
		out = append(out, through(entries, evaluator.Request{Method: "GET", Host: "nobody.example", Path: "/"})...)
	}
	return out
}

// connections returns the ways to an address: captured and direct.
func connections(ip string, port int) []evaluator.Request {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return nil
	}
	to := netip.AddrPortFrom(address, uint16(port))
	return []evaluator.Request{{Destination: to, Captured: true}, {Destination: to}}
}

func through(entries []evaluator.Request, r evaluator.Request) []evaluator.Request {
	var out []evaluator.Request
	for _, entry := range entries {
		r.Destination, r.Captured, r.AbsoluteForm = entry.Destination, entry.Captured, entry.AbsoluteForm
		out = append(out, r)
	}
	return out
}

// tcpRequests go to the edges of each destination.
func tcpRequests(l *ir.Listener) []evaluator.Request {
	out := connections(l.IP, l.Port)
	for _, r := range l.TCP.Routes {
		for _, name := range r.ServerNames {
			for _, c := range connections(l.IP, l.Port) {
				c.ServerName = strings.Replace(name, "*", "www", 1)
				out = append(out, c)
			}
		}
		for _, d := range r.Destinations {
			block, err := ir.ParseDestination(d)
			if err != nil {
				continue
			}
			for _, ip := range []netip.Addr{block.Addr(), block.Addr().Prev(), block.Addr().Next()} {
				if ip.IsValid() {
					out = append(out, connections(ip.String(), l.Port)...)
				}
			}
		}
	}
	return out
}

// chainRequests ask for the names that select filter chains.
func chainRequests(l *ir.Listener) []evaluator.Request {
	var out []evaluator.Request
	for _, chain := range l.Chains {
		names := chain.ServerNames
		if chain.TCP != nil {
			for _, r := range chain.TCP.Routes {
				names = slices.Concat(names, r.ServerNames)
			}
		}
		for _, name := range names {
			for _, c := range connections(l.IP, l.Port) {
				c.ServerName = strings.Replace(name, "*", "www", 1)
				c.Method, c.Host, c.Path = "GET", c.ServerName, "/"
				out = append(out, c)
			}
		}
	}
	return out
}

func hostRequests(h *ir.VirtualHost) []evaluator.Request {
	heads := []evaluator.Request{{Method: "GET", Path: "/"}, {Method: "GET", Path: "/other?q=1"}}
	for _, r := range h.Routes {
		heads = append(heads, matchRequests(r.Match)...)
	}
	var out []evaluator.Request
	for i, domain := range h.Domains {
		authorities := []string{strings.Replace(domain, "*", "www", 1)}
		if i == 0 {
			authorities = append(authorities, strings.ToUpper(authorities[0]), authorities[0]+":81", "x"+authorities[0],
				strings.TrimPrefix(domain, "*"))
		}
		if i == 1 { // The first one may include its port.
			authorities = append(authorities, authorities[0]+":81")
		}
		for _, authority := range authorities {
			for _, r := range heads {
				if r.Host == "" {
					r.Host = authority
				}
				out = append(out, r)
			}
		}
	}
	return out
}
