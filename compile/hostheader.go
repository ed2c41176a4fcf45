package compile

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/ir"
)

// isHost reports whether a header is the host that a request is for, which no
// Envoy changes as it does headers: it refuses a table that asks for it.
func isHost(header string) bool {
	return strings.EqualFold(header, "host") || strings.EqualFold(header, ":authority")
}

// hostIn is the host among headers, "" for none.
func hostIn(headers map[string]string) string {
	for _, name := range sortedNames(headers) {
		if isHost(name) && headers[name] != "" {
			return headers[name]
		}
	}
	return ""
}

// hostOf is the host among headers to set or add.
func hostOf(o *networking.Headers_HeaderOperations) string {
	if host := hostIn(o.GetSet()); host != "" {
		return host
	}
	return hostIn(o.GetAdd())
}

// setHost makes the host among headers a rewrite, as Istio does. A rewrite that
// the route has already stays.
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
