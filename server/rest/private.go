package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/pilot-api/pilot-api/server/proxied"
)

type privateKey struct{}

// Private returns the base context of requests on a private listener: only processes
// that may have private keys can connect to it.
func Private(ctx context.Context) context.Context {
	return context.WithValue(ctx, privateKey{}, true)
}

// isPrivate reports whether a request arrived on a private listener.
func isPrivate(r *http.Request) bool {
	private, _ := r.Context().Value(privateKey{}).(bool)
	return private
}

// OnlyPolls restricts private listeners to polls of Envoys. It refuses polls that a
// proxy forwarded.
func OnlyPolls(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPrivate(r) {
			if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/v3/discovery:") {
				http.Error(w, "this socket is for the polls of Envoys (POST /v3/discovery:TYPE): ask for everything else at the address of --listen", http.StatusForbidden)
				return
			}
			if sign := proxied.EnvoysOwn(r.Header); sign != "" {
				http.Error(w, passedOn(sign), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func passedOn(sign string) string {
	return fmt.Sprintf("this socket is for Envoys of this machine and takes nothing that a proxy passes on, which the header %s shows", sign)
}
