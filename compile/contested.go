package compile

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/pilot-api/pilot-api/mesh"
)

// contested is the set of names and domains at a port that more than one virtual
// host may want, for callers of some domain. Every other name or domain has one
// owner for all callers.
type contested map[wanted]bool

// wanted is a name or domain at a port, in lower case, as Envoy ignores the case of
// domains.
type wanted struct {
	port int
	text string
}

func sameContested(a, b contested) bool { return maps.Equal(a, b) }

// contestedIn returns the contested names among the services that proxies of a
// scope see. These are the services of the whole mesh, unless a Sidecar leaves some
// out.
func (rd *reader) contestedIn(s scope) contested {
	if s.sidecar.limits() {
		return rd.findContested(rd.servicesFor(s))
	}
	return rd.contested.Get(rd.r, none{})
}

// findContested considers every name by which callers of any domain may call a
// service.
func (rd *reader) findContested(services []*mesh.Service) contested {
	seen, out := map[wanted]bool{}, contested{}
	want := func(port int, text string) {
		w := wanted{port, strings.ToLower(text)}
		if seen[w] {
			out[w] = true
		}
		seen[w] = true
	}
	for _, svc := range services {
		for _, port := range svc.Ports {
			if !rd.routesHTTP(svc, port) {
				continue
			}
			host := newCandidate(svc, port, svc.Hostname)
			want(port.Number, nameMark+host.Name)
			for _, domain := range host.Domains {
				want(port.Number, domain)
			}
		}
	}
	return out
}

// nameMark distinguishes names from domains: no domain begins with it.
const nameMark = "\n"

// has reports whether anything of an entry is contested.
func (c contested) has(e *entry) bool {
	if len(c) == 0 {
		return false
	}
	port := e.at.port.Number
	return c[wanted{port, nameMark + strings.ToLower(e.name)}] ||
		slices.ContainsFunc(e.domains, func(domain string) bool { return c[wanted{port, strings.ToLower(domain)}] })
}

// sound reports whether all domains of a host are valid and distinct, without
// looking at other hosts.
func (h *candidate) sound() bool {
	seen := make(map[string]bool, len(h.Domains))
	for _, domain := range h.Domains {
		domain = strings.ToLower(domain)
		if domain == "" || strings.HasSuffix(domain, ".") || strings.Contains(domain, ".:") || seen[domain] || strings.ContainsFunc(domain, unicode.IsControl) {
			return false
		}
		seen[domain] = true
	}
	return h.Name != "" && len(seen) > 0
}

// calledBy returns the part of the callers' domain that decides by which names they
// know a service: the suffix that it shares with the host name.
func calledBy(svc *mesh.Service, domain string) string {
	if svc.External || strings.HasPrefix(svc.Hostname, "*") {
		return ""
	}
	shared := ""
	for at := len(domain); at > 0; {
		at = strings.LastIndexByte(domain[:at], '.')
		if end := domain[at+1:]; svc.Hostname != end && !strings.HasSuffix(svc.Hostname, "."+end) {
			break
		}
		shared = domain[at+1:]
		if at < 0 {
			break
		}
	}
	return shared
}
