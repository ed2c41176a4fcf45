package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

// Check is one condition of being ready. Its error is shown at /readyz to
// whoever asks: it must be written for people and hold no secrets. What lies
// behind a store.Error is not shown. A Degraded one leaves the server ready.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// Degraded is an error of a Check that somebody should know of, although all
// requests are still served.
type Degraded string

func (d Degraded) Error() string { return string(d) }

// checkTimeout bounds all checks of one /readyz together.
const checkTimeout = 5 * time.Second

// healthz and livez say that the process answers; they look no further, because
// a restart would mend nothing that lies behind.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) { runChecks(w, r, "healthz", nil) }
func (s *Server) livez(w http.ResponseWriter, r *http.Request)   { runChecks(w, r, "livez", nil) }

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	runChecks(w, r, "readyz", s.opts.Ready)
}

// runChecks answers 200 when all hold, in the words of Kubernetes. The list of
// them is shown with ?verbose, and always when one fails.
func runChecks(w http.ResponseWriter, r *http.Request, name string, checks []Check) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	code, outcome := http.StatusOK, "passed"
	lines := []string{"[+]ping ok"}
	for _, c := range checks {
		err := c.Run(ctx)
		var degraded Degraded
		switch {
		case err == nil:
			lines = append(lines, fmt.Sprintf("[+]%s ok", c.Name))
		case errors.As(err, &degraded):
			lines = append(lines, fmt.Sprintf("[!]%s degraded: %v", c.Name, err))
		default:
			code, outcome = http.StatusServiceUnavailable, "failed"
			lines = append(lines, fmt.Sprintf("[-]%s failed: %v", c.Name, err))
		}
	}
	if code == http.StatusOK && !queryOf(r).Has("verbose") {
		writePlain(w, code, "ok\n")
		return
	}
	lines = append(lines, name+" check "+outcome)
	writePlain(w, code, strings.Join(lines, "\n")+"\n")
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
