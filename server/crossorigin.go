package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/server/wire"
)

// Any page in a browser on this machine can send requests to a loopback address, and the
// server may run without authentication. Two things identify a page: the headers that its
// browser adds to a request, and the name of its own site in Host if the page made that
// name resolve to our address (DNS rebinding).

// refuseOtherSites refuses changes that a browser sends for a page of another site.
func (s *Server) refuseOtherSites(next http.Handler) http.Handler {
	var browsers http.CrossOriginProtection
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := browsers.Check(r); err != nil {
			s.fail(w, r, forbidden("a web page of another site may not change anything here (%v)", err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseOtherNames refuses requests to a loopback listener whose Host is neither a
// loopback name nor one of the server's own names.
func (s *Server) refuseOtherNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if listenerOf(r).loopback && !loopbackName(r.Host) && !s.named(r.Host) {
			s.fail(w, r, forbidden("Host: must be localhost or a loopback address where only this machine is listened to, or be given with --host-name, found %q; a proxy in front can set it", r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refusePages protects discovery, which no page needs, not even to read: the server
// keeps every caller as a proxy. Envoy sends the name of its cluster as Host, so a
// name without a dot is accepted (no site has one), as is any address.
func (s *Server) refusePages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		checked := listenerOf(r).loopback || len(s.opts.HostNames) > 0
		switch site := r.Header.Get("Sec-Fetch-Site"); {
		case site != "" && site != "none" && site != "same-origin":
			http.Error(w, "a web page of another site may not ask for configuration", http.StatusForbidden)
		case checked && !loopbackName(r.Host) && !siteless(r.Host) && !s.named(r.Host):
			http.Error(w, fmt.Sprintf("Host: must be an address, a name without a dot, or one given with --host-name, found %q", r.Host), http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// named reports whether a Host header has one of the server's own names.
func (s *Server) named(host string) bool {
	name := hostName(host)
	return slices.ContainsFunc(s.opts.HostNames, func(own string) bool { return strings.EqualFold(own, name) })
}

// siteless reports whether a Host header has a name that no site can have.
func siteless(host string) bool {
	name := hostName(host)
	_, err := netip.ParseAddr(name)
	return err == nil || !strings.Contains(name, ".")
}

// hostName returns a Host header without the port, the brackets of an address and
// the dot after a name.
func hostName(host string) string {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]") // Without a port.
	}
	return strings.TrimSuffix(name, ".")
}

// loopbackName reports whether a Host header names this machine, without asking a
// resolver.
func loopbackName(host string) bool {
	name := hostName(host)
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(name, "localhost")
}

func forbidden(format string, args ...any) error {
	return wire.Failure(http.StatusForbidden, metav1.StatusReasonForbidden, format, args...)
}
