package v1

import (
	"net/http"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// blackHole is a cluster without endpoints. v1 has no direct responses, so requests to
// this cluster get 503 instead.
const blackHole = ir.Nobody

// expressible returns the route as v1 can express it. The result is closed if the route
// cannot act as written, and nil if it may be left out.
func expressible(r *ir.Route) (*ir.Route, diag.List) {
	if r.Response != nil && *r.Response == *ir.BadPath() {
		return nil, nil // No path is normal here, so the route would protect nothing.
	}
	m, problems := speakableMatch(r)
	for _, lack := range lacking(r) {
		problems = append(problems, closing(r, lack)...)
	}
	switch {
	case problems == nil:
		return r, nil
	case r.Optional:
		return nil, problems
	case len(r.Origins) == 0:
		return r.Closed(m), nil // It follows from no object that could be complained of.
	}
	return r.Closed(m), problems
}

func closing(r *ir.Route, why string, args ...any) diag.List {
	consequence := "Envoy v1 answers 503 in place of this route: "
	if r.Optional {
		consequence = "Envoy v1 gets no such route: "
	}
	return diag.Warn(diag.NotHonoured, r.Origins, consequence+why, args...)
}

// lacking returns the problems with what v1 cannot do with a matching request.
func lacking(r *ir.Route) []string {
	var out []string
	for _, part := range []struct {
		missing bool
		why     string
	}{
		// Only listeners that v1 does not get misdirect requests.
		{r.Response != nil && *r.Response != *ir.Unavailable() && *r.Response != *ir.Misdirected(), "it gives no other answers of its own"},
		{r.Redirect != nil && *r.Redirect != ir.Redirect{Host: r.Redirect.Host, Path: r.Redirect.Path, StripQuery: r.Redirect.StripQuery, Code: redirectCode(r.Redirect)},
			"its redirects change host and path and answer 301"},
		{r.Rewrite != nil && r.Rewrite.Regex != nil, "its rewrites replace what the match names"},
		{changesHeaders(r), "it adds headers to the requests of a route, and changes no others"},
		{fillsIn(r.RequestHeaders.Append), "it writes headers as they stand, without anything filled in"},
	} {
		if part.missing {
			out = append(out, part.why)
		}
	}
	return out
}

// redirectCode is the only status with which v1 redirects, as r writes it.
func redirectCode(r *ir.Redirect) int {
	if r.Code == 0 {
		return 0
	}
	return http.StatusMovedPermanently
}

// changesHeaders reports whether headers are changed in a way that v1 lacks.
func changesHeaders(r *ir.Route) bool {
	if len(r.RequestHeaders.Set) > 0 || len(r.RequestHeaders.Remove) > 0 || !r.ResponseHeaders.Empty() {
		return true
	}
	for _, c := range r.Clusters {
		if c.ChangesHeaders() {
			return true
		}
	}
	return false
}

// fillsIn reports whether a value depends on the request.
func fillsIn(headers []ir.Header) bool {
	return slices.ContainsFunc(headers, func(h ir.Header) bool { return h.Format })
}

// closes reports whether a route of the configuration answers 503, or closes
// connections.
func closes(cfg *ir.Config) bool {
	for _, t := range cfg.RouteTables {
		if closesIn(t) {
			return true
		}
	}
	for _, l := range cfg.Listeners {
		if l.HTTP != nil && l.HTTP.Inline != nil && closesIn(l.HTTP.Inline) || ClosesTCP(l) || refuses(l) {
			return true
		}
	}
	return false
}

func closesIn(t *ir.RouteTable) bool {
	for _, h := range t.VirtualHosts {
		for _, r := range h.Routes {
			if expressed, _ := expressible(r); expressed != nil && expressed.Response != nil {
				return true
			}
		}
	}
	return false
}
