package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Any page in a browser on this machine can send requests to a loopback
// address, and nobody has to log in here. A page is told by what its browser
// adds to a request, and by the name of its own site in Host when it had that
// name resolved to our address (DNS rebinding).

type loopbackKey struct{}

type privateKey struct{}

// markListener notes in the base context of a listener's requests whether it listens on
// a loopback address, and whether it is private.
func markListener(ln net.Listener, private bool) context.Context {
	addr, ok := ln.Addr().(*net.TCPAddr)
	ctx := context.WithValue(context.Background(), loopbackKey{}, ok && addr.IP.IsLoopback())
	return context.WithValue(ctx, privateKey{}, private)
}

// isPrivate reports whether a request came by a private listener.
func isPrivate(r *http.Request) bool {
	private, _ := r.Context().Value(privateKey{}).(bool)
	return private
}

// refuseOtherSites refuses changes that a browser sends for a page of another
// site.
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

// refuseOtherNames refuses requests to a loopback listener under a name that
// is neither loopback's nor one of the server's own.
func (s *Server) refuseOtherNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopback, _ := r.Context().Value(loopbackKey{}).(bool); loopback && !loopbackName(r.Host) && !s.named(r.Host) {
			s.fail(w, r, forbidden("Host: must be localhost or a loopback address where only this machine is listened to, or be given with --host-name, found %q; a proxy in front can set it", r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refusePages is for discovery, which no page has any business with, not even
// to read: whoever asks is kept as a proxy. An Envoy sends the name of its
// cluster for Host, so a name without a dot, which is no site's, is taken as
// well as any address.
func (s *Server) refusePages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		loopback, _ := r.Context().Value(loopbackKey{}).(bool)
		checked := loopback || len(s.opts.HostNames) > 0
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

// siteless reports whether a Host header is no name that a site could have.
func siteless(host string) bool {
	name := hostName(host)
	_, err := netip.ParseAddr(name)
	return err == nil || !strings.Contains(name, ".")
}

// hostName is a Host header without the port, and without what may stand around
// an address or behind a name.
func hostName(host string) string {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]") // Without a port.
	}
	return strings.TrimSuffix(name, ".")
}

// loopbackName reports whether a Host header names this machine, whatever the
// resolver says.
func loopbackName(host string) bool {
	name := hostName(host)
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(name, "localhost")
}

func forbidden(format string, args ...any) error {
	return plainStatus(http.StatusForbidden, metav1.StatusReasonForbidden, format, args...)
}
