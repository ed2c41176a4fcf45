package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/pilot-api/pilot-api/server/proxied"
)

// onlyPolls restricts a private listener to polls of Envoys. It refuses polls that
// a proxy forwarded.
func onlyPolls(next http.Handler) http.Handler {
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
