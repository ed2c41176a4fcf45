package v3

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// acceptable returns the route in a form that Envoy accepts: closed if it cannot act as
// written, and nil if it may be left out.
func acceptable(r *ir.Route) (*routev3.Route, diag.List) {
	if path, _, ok := strings.Cut(r.Match.Prefix, "?"); ok {
		m := r.Match
		m.Path, m.Prefix = path, ""
		return closed(r, m, "it compares a prefix with the path without the query, found %q", r.Match.Prefix)
	}
	encoded, problems := route(r)
	if err := Check(encoded); err != nil {
		return closed(r, acceptableMatch(r.Match), "%v", err)
	}
	return encoded, problems
}

// closed returns a route that answers 503 to all requests that fit the usable conditions
// of the match.
func closed(r *ir.Route, m ir.Match, format string, args ...any) (*routev3.Route, diag.List) {
	if r.Optional {
		return nil, diag.Warn(diag.NotHonoured, r.Origins, "Envoy v3 gets no such route: "+format, args...)
	}
	out, _ := route(r.Closed(m))
	return out, diag.Warn(diag.NotHonoured, r.Origins, "Envoy v3 answers 503 in place of this route: "+format, args...)
}

// acceptableMatch returns the match without the conditions that break a constraint.
func acceptableMatch(m ir.Match) ir.Match {
	out := ir.Match{Path: m.Path, Prefix: m.Prefix, Regex: m.Regex, IgnoreCase: m.IgnoreCase}
	if Check(routeMatch(out)) != nil {
		out = ir.Match{}
	}
	for _, h := range m.Headers {
		if Check(headerMatcher(h)) == nil {
			out.Headers = append(out.Headers, h)
		}
	}
	for _, q := range m.Query {
		if Check(queryMatcher(q)) == nil {
			out.Query = append(out.Query, q)
		}
	}
	return out
}

// closedHost returns a virtual host that answers 503, with the domains that Envoy accepts.
func closedHost(h *ir.VirtualHost, refused error) (*routev3.VirtualHost, diag.List) {
	closed := h.Closed()
	problems := diag.Warn(diag.NotHonoured, closed.Routes[0].Origins, "Envoy v3 answers 503 in place of virtual host %s: %v", h.Name, refused)
	out := &routev3.VirtualHost{Name: cmp.Or(h.Name, "closed")}
	for _, d := range h.Domains {
		if checkHost(&routev3.VirtualHost{Name: out.Name, Domains: []string{d}}) == nil {
			out.Domains = append(out.Domains, d)
		}
	}
	if len(out.Domains) == 0 {
		return nil, problems
	}
	unavailable, _ := route(closed.Routes[0])
	out.Routes = []*routev3.Route{unavailable}
	return out, problems
}

// checkHost is Check for a virtual host with only a name and domains. It skips the regular
// expression for each domain, which takes most of the time.
func checkHost(h *routev3.VirtualHost) error {
	switch {
	case h.GetName() == "":
		return errors.New("must have a name")
	case len(h.GetDomains()) == 0:
		return errors.New("must have a domain")
	}
	for _, d := range h.GetDomains() {
		if strings.IndexByte(d, 0) >= 0 || strings.IndexByte(d, '\n') >= 0 || strings.IndexByte(d, '\r') >= 0 {
			return fmt.Errorf("a domain must not contain NUL or the end of a line, found %q", d)
		}
	}
	return nil
}
