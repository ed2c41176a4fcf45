package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

// Check is one condition of being ready. Its error is shown at /readyz to
// whoever asks: it must be written for people and hold no secrets. What lies
// behind a store.Error is not shown.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// checkTimeout bounds all checks of one /readyz together.
const checkTimeout = 5 * time.Second

// healthz says that the process answers; it looks no further, because a
// restart would mend nothing that lies behind.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writePlain(w, http.StatusOK, "ok\n")
}

// readyz runs the checks: 200 when all hold. The list of them is shown with
// ?verbose, and always when one fails.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	code, last := http.StatusOK, "ready\n"
	var lines strings.Builder
	for _, c := range s.opts.Ready {
		if err := c.Run(ctx); err != nil {
			code, last = http.StatusServiceUnavailable, "not ready\n"
			fmt.Fprintf(&lines, "[-] %s: %v\n", c.Name, err)
			continue
		}
		fmt.Fprintf(&lines, "[+] %s\n", c.Name)
	}
	if code == http.StatusOK && !r.URL.Query().Has("verbose") {
		lines.Reset()
	}
	writePlain(w, code, lines.String()+last)
}

func writePlain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = fmt.Fprint(w, text)
}

func (s *Server) version(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, r, s.opts.Version)
}

// index lists the paths that can be asked without knowing more.
func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	var paths []string
	err := chi.Walk(s.router, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method == http.MethodGet && !strings.Contains(route, "{") && route != "/" {
			paths = append(paths, strings.TrimSuffix(route, "/"))
		}
		return nil
	})
	slices.Sort(paths)
	if err == nil {
		err = writeJSON(w, r, map[string][]string{"paths": slices.Compact(paths)})
	}
	if err != nil {
		s.fail(w, r, err)
	}
}
