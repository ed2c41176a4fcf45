package explain

import (
	"regexp"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// oneHost matches the Host headers that StrictHosts accepts.
var oneHost = regexp.MustCompile("^(?:" + ir.HostPattern + ir.AnyPort + ")$")

// chooseHost returns the virtual host with the best domain for an authority, and
// that domain: an exact match, then the longest domain with a leading star, then
// the longest with a trailing star, then the star alone. A star stands for at least
// one character.
func chooseHost(t *ir.RouteTable, authority string) (best *ir.VirtualHost, domain string) {
	authority = strings.ToLower(authority)
	if at := strings.LastIndexByte(authority, ':'); t.IgnorePort && at > strings.LastIndexByte(authority, ']') {
		authority = authority[:at]
	}
	bestRank := 0
	for _, h := range t.VirtualHosts {
		for _, d := range h.Domains {
			if r := rank(strings.ToLower(d), authority); r > bestRank {
				best, domain, bestRank = h, d, r
			}
		}
	}
	return best, domain
}

// kindOfDomain is larger than the length of any domain. Among domains of one kind
// the longer one ranks higher.
const kindOfDomain = 1 << 20

// rank returns the rank of a domain that matches, and 0 for one that does not.
func rank(domain, authority string) int {
	switch {
	case domain == "*":
		return 1
	case domain == authority:
		return 3*kindOfDomain + len(domain)
	case len(authority) < len(domain):
		return 0
	case strings.HasPrefix(domain, "*") && strings.HasSuffix(authority, domain[1:]):
		return 2*kindOfDomain + len(domain)
	case strings.HasSuffix(domain, "*") && strings.HasPrefix(authority, domain[:len(domain)-1]):
		return kindOfDomain + len(domain)
	}
	return 0
}
