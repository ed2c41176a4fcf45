package v1

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// domains are those of a virtual host, each with its form with a final dot: these
// proxies do not drop the dot of a Host header, and would take it for another
// host.
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

// withFinalDot is a domain with a dot after its host; "" for one that has no such
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

// withinPort is a route of a virtual host for the Host headers that name no other
// port than the listener's, where there is one: these proxies choose the virtual
// host by the port too, and one for unknown hosts would get what is for a known
// host.
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
