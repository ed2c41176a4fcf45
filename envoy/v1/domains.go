package v1

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// domains returns the domains of a virtual host, each also with a final dot. A v1 Envoy
// does not remove the dot of a Host header, and would take it for another host.
func domains(h *ir.VirtualHost) []string {
	if h.DotKept {
		return h.Domains
	}
	out := h.Domains[:len(h.Domains):len(h.Domains)]
	for _, domain := range h.Domains {
		if dotted := withFinalDot(domain); dotted != "" {
			out = append(out, dotted)
		}
	}
	return out
}

// withFinalDot returns a domain with a dot after its host, or "" if there is no such
// form.
func withFinalDot(domain string) string {
	host, port, err := net.SplitHostPort(domain)
	if err != nil {
		host, port = domain, ""
	}
	switch {
	case host == "" || strings.HasSuffix(host, "*") || strings.Contains(host, ":") || strings.HasPrefix(host, "["):
		return "" // Any host, or an IPv6 address.
	case port == "":
		return host + "."
	}
	return host + ".:" + port
}

// withinPort limits a route of a virtual host for unknown hosts to Host headers without
// a port or with the port of the listener, if there is one. A v1 Envoy selects the
// virtual host by the port too. Otherwise this virtual host would get requests for a
// known host at another port.
func withinPort(h *ir.VirtualHost, r *ir.Route) *ir.Route {
	if h.Port == 0 {
		return r
	}
	out := *r
	out.Match.Headers = append(slices.Clone(r.Match.Headers), ir.HeaderMatch{
		Name: ":authority", Regex: fmt.Sprintf(`%s\.?(:%d)?`, ir.HostPattern, h.Port),
	})
	return &out
}
