package compile

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/ir"
)

// isHost reports whether a header is the host of a request. Envoy cannot change
// that like other headers: it rejects a route table that asks for it.
func isHost(header string) bool {
	return strings.EqualFold(header, "host") || strings.EqualFold(header, ":authority")
}

// hostIn returns the host among headers, or "".
func hostIn(headers map[string]string) string {
	for _, name := range sortedNames(headers) {
		if isHost(name) && headers[name] != "" {
			return headers[name]
		}
	}
	return ""
}

// hostOf returns the host among headers to set or add, or "".
func hostOf(o *networking.Headers_HeaderOperations) string {
	if host := hostIn(o.GetSet()); host != "" {
		return host
	}
	return hostIn(o.GetAdd())
}

// setHost turns the host among headers into a rewrite, as Istio does. It keeps a
// rewrite that the route already has.
func setHost(route *ir.Route, host string) {
	switch {
	case host == "":
	case route.Rewrite == nil:
		route.Rewrite = &ir.Rewrite{Host: host}
	case route.Rewrite.Host == "":
		rewrite := *route.Rewrite
		rewrite.Host = host
		route.Rewrite = &rewrite
	}
}
