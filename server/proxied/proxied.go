// Package proxied distinguishes requests that a proxy forwarded from those that their
// client sent itself. Only the server's own user may open its private sockets. But an Envoy
// of that user opens them too, and may forward anybody's requests.
package proxied

import "strings"

// Header returns the name of a header by which a proxy shows that it forwarded a
// request, or "" if there is none. The headers are an http.Header or the metadata
// of gRPC.
//
// The absence of such headers proves nothing: a proxy can be configured to remove
// them.
func Header(headers map[string][]string) string {
	for name := range headers {
		if lower := strings.ToLower(name); added(lower) {
			return lower
		}
	}
	return ""
}

// EnvoysOwn is Header for a socket on which Envoys poll. It ignores the headers
// that an Envoy adds to its own requests.
func EnvoysOwn(headers map[string][]string) string {
	for name, values := range headers {
		switch lower := strings.ToLower(name); {
		case lower == "x-envoy-internal", lower == "x-envoy-expected-rq-timeout-ms":
		case lower == "x-forwarded-for" && len(values) == 1 && !strings.Contains(values[0], ","):
			// The Envoy's own address.
		case added(lower):
			return lower
		}
	}
	return ""
}

func added(name string) bool {
	return name == "via" || name == "forwarded" || name == "x-request-id" || name == "x-real-ip" ||
		strings.HasPrefix(name, "x-forwarded-") || strings.HasPrefix(name, "x-envoy-")
}
