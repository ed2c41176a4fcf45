package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Any page in a browser on this machine can send requests to a loopback
// address, and nobody has to log in here. A page is told by what its browser
// adds to a request, and by the name of its own site in Host when it had that
// name resolved to our address (DNS rebinding).

type loopbackKey struct{}

// markLoopback notes in the base context of a listener's requests whether it
// listens on a loopback address.
func markLoopback(ln net.Listener) context.Context {
	addr, ok := ln.Addr().(*net.TCPAddr)
	return context.WithValue(context.Background(), loopbackKey{}, ok && addr.IP.IsLoopback())
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
// is not loopback's. It is not for Envoys: they send the name of a cluster.
func (s *Server) refuseOtherNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopback, _ := r.Context().Value(loopbackKey{}).(bool); loopback && !loopbackName(r.Host) {
			s.fail(w, r, forbidden("Host: must be localhost or a loopback address where only this machine is listened to, found %q; a proxy in front can set it", r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loopbackName tells whether a Host header names this machine, whatever the
// resolver says.
func loopbackName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]") // Without a port.
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(strings.TrimSuffix(name, "."), "localhost")
}

func forbidden(format string, args ...any) error {
	return plainStatus(http.StatusForbidden, metav1.StatusReasonForbidden, format, args...)
}
