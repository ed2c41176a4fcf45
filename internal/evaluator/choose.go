package evaluator

import "strings"

// chooseHost returns the virtual host with the best domain for an authority in lower
// case. The order is: an equal domain, the longest that starts with a star, the longest
// that ends with one, the star alone. A star stands for at least one character.
func chooseHost(hosts []*VirtualHost, authority string) *VirtualHost {
	var best *VirtualHost
	var bestRank rank
	for _, h := range hosts {
		for _, d := range h.Domains {
			if r, ok := rankOf(d, authority); ok && r.above(bestRank) {
				best, bestRank = h, r
			}
		}
	}
	return best
}

// rank is the rank of a matching domain. Among equal kinds the longer domain is better.
type rank struct{ kind, length int }

// The kinds of domains, worst first; 0 is no domain.
const (
	anyDomain = iota + 1
	prefixDomain
	suffixDomain
	exactDomain
)

func (r rank) above(other rank) bool {
	return r.kind > other.kind || r.kind == other.kind && r.length > other.length
}

func rankOf(domain, authority string) (r rank, ok bool) {
	switch {
	case domain == "*":
		return rank{anyDomain, 1}, true
	case domain == authority:
		return rank{exactDomain, len(domain)}, true
	case strings.HasPrefix(domain, "*"):
		return rank{suffixDomain, len(domain)}, len(authority) >= len(domain) && strings.HasSuffix(authority, domain[1:])
	case strings.HasSuffix(domain, "*"):
		return rank{prefixDomain, len(domain)}, len(authority) >= len(domain) && strings.HasPrefix(authority, domain[:len(domain)-1])
	default:
		return rank{}, false
	}
}

func (route *Route) matches(r Request) bool {
	if !route.Path.matches(r) || !headersMatch(route.Headers, r) {
		return false
	}
	for _, q := range route.Query {
		if value, ok := r.parameter(q.Name); !ok || !q.fits(value) {
			return false
		}
	}
	return true
}
