package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
)

// Check is one condition of being ready. /readyz shows its error to every caller,
// so write it for people and without secrets. The cause of a store.Error is not
// shown. If the error is a Degraded, the server stays ready.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// Degraded is an error of a Check that people should know about, although the server still
// answers all requests.
type Degraded string

func (d Degraded) Error() string { return string(d) }

// checkTimeout bounds all checks of one /readyz together.
const checkTimeout = 5 * time.Second

// healthz and livez report that the process answers. They check nothing else,
// because a restart would repair nothing else.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) { runChecks(w, r, "healthz", nil) }
func (s *Server) livez(w http.ResponseWriter, r *http.Request)   { runChecks(w, r, "livez", nil) }

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	runChecks(w, r, "readyz", s.opts.Ready)
}

// runChecks answers 200 if all checks hold, in the format of Kubernetes. It lists
// the checks with ?verbose, and always if one fails.
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
	if code == http.StatusOK && !wire.Query(r).Has("verbose") {
		wire.WriteText(w, code, "ok\n")
		return
	}
	lines = append(lines, name+" check "+outcome)
	wire.WriteText(w, code, strings.Join(lines, "\n")+"\n")
}

func (s *Server) version(w http.ResponseWriter, r *http.Request) error {
	return answer.WriteJSON(w, r, s.opts.Version)
}

// profile answers with a profile of the process.
func profile(w http.ResponseWriter, r *http.Request) {
	switch chi.URLParam(r, "profile") {
	case "cmdline":
		pprof.Cmdline(w, r)
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}

// index lists the paths without parameters.
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
		err = answer.WriteJSON(w, r, map[string][]string{"paths": slices.Compact(paths)})
	}
	if err != nil {
		s.fail(w, r, err)
	}
}
