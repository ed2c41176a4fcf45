package authority

import (
	"fmt"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
)

// missing returns a text for each proxy that is not known to trust a root. A connected proxy that
// takes no roots from the servers is none of them. A lost one is, because it is not known whether
// it took any.
func missing(all []discovery.ProxyStatus, root string) (out []string) {
	for _, p := range all {
		switch {
		case p.State != "" && p.Lost:
			out = append(out, fmt.Sprintf("proxy %s lost its connection at %s and may still run without the root", p.Node, p.LastSeen.UTC().Format(time.RFC3339)))
		case p.Roots == nil:
		case !slices.Contains(p.Roots.Names, root):
			out = append(out, fmt.Sprintf("proxy %s has not been sent the root", p.Node))
		case !p.Roots.Acknowledged:
			out = append(out, fmt.Sprintf("proxy %s has not acknowledged the root", p.Node))
		}
	}
	return out
}

// count counts the connected proxies that take roots, and those that trust all present ones.
func (s *Status) count(all []discovery.ProxyStatus) {
	for _, p := range all {
		if p.State != "" || p.Roots == nil {
			continue
		}
		s.Proxies++
		trusts := p.Roots.Acknowledged
		for _, a := range s.Authorities {
			trusts = trusts && slices.Contains(p.Roots.Names, a.Name)
		}
		if trusts {
			s.Trusting++
		}
	}
}
