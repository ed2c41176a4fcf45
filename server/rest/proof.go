package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/proxyauth"
)

// proofs proves the proxies that poll.
type proofs struct {
	prover *proxyauth.Prover // nil if nodes are trusted
	server *discovery.Publisher
}

type proofKey struct{}

// proved refuses polls without a proof, whatever they ask for. A client that may open a
// private listener has proved enough.
func (p proofs) proved(next http.Handler) http.Handler {
	if p.prover == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPrivate(r) || r.URL.Path == socketsPath {
			next.ServeHTTP(w, r)
			return
		}
		proof, err := p.prover.Prove(proxyauth.Credentials{
			Context: r.Context(), TLS: r.TLS, Authorization: r.Header.Values("Authorization"), Address: r.RemoteAddr,
		})
		if errors.Is(err, proxyauth.ErrUndecided) {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="pilot-api"`)
			w.Header().Set("Connection", "close") // Only another connection can show another certificate.
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), proofKey{}, proof)))
	})
}

// admit returns an error unless the proxy that polls may be the proxy of a node.
func (p proofs) admit(r *http.Request, node discovery.Node) error {
	proof, proved := r.Context().Value(proofKey{}).(proxyauth.Proof)
	if p.prover == nil || !proved {
		return nil // It is on a private listener.
	}
	namespace, err := p.server.NamespaceOf(node)
	if err != nil {
		return err
	}
	role, _, _ := strings.Cut(node.ID, "~")
	return p.prover.Admit(r.Context(), proof, proxyauth.Claim{Node: node.ID, Namespace: namespace, Role: role, Labels: node.Labels != ""})
}

// isForbidden reports whether an error is that of a proxy that claims what it may not.
func isForbidden(err error) bool { return errors.Is(err, proxyauth.ErrForbidden) }
