package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/server/rest"
	"github.com/pilot-api/pilot-api/server/wire"
)

// Listeners are the listeners of a Server. Only API is required.
type Listeners struct {
	// API is for people and their programs, and for the polls of Envoys if there is no
	// Discovery.
	API net.Listener
	// Discovery is for the polls of Envoys, and nothing else.
	Discovery net.Listener
	// Private are for Envoys that may have private keys. Only processes that may have the
	// keys can connect. These listeners accept only polls.
	Private []net.Listener
}

// all returns the listeners.
func (l Listeners) all() []net.Listener {
	all := append(slices.Clone(l.Private), l.API)
	if l.Discovery != nil {
		all = append(all, l.Discovery)
	}
	return all
}

// Serve answers on an API listener and on private ones: see ServeOn.
func (s *Server) Serve(ctx context.Context, api net.Listener, private ...net.Listener) error {
	return s.ServeOn(ctx, Listeners{API: api, Private: private})
}

// ServeOn answers until ctx ends. Then it accepts no new connections, ends watches with a
// last bookmark, and gives other requests ShutdownTimeout to finish. It closes the
// listeners, and returns nil after an orderly end. A Server can serve once.
//
// A listener may use TLS. It must not offer HTTP/2, because the limits of connections are
// those of HTTP/1.1, in which a connection has one request at a time.
func (s *Server) ServeOn(ctx context.Context, at Listeners) error {
	srv := &http.Server{
		Handler:           s.router,
		ReadHeaderTimeout: min(10*time.Second, s.opts.RequestTimeout),
		ReadTimeout:       s.opts.RequestTimeout,
		WriteTimeout:      2 * s.opts.RequestTimeout,
		IdleTimeout:       3 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       at.context,
		ErrorLog:          slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelDebug),
	}
	admission.NewConnections(s.opts.MaxConnections).Attach(srv)
	srv.RegisterOnShutdown(s.stop)
	all := at.all()
	failed := make(chan error, len(all))
	for _, l := range all {
		go func() { failed <- fmt.Errorf("serve on %s: %w", l.Addr(), srv.Serve(l)) }()
	}
	select {
	case err := <-failed:
		return errors.Join(err, srv.Close())
	case <-ctx.Done():
	}
	return s.shutdown(srv)
}

func (s *Server) shutdown(srv *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.ShutdownTimeout)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.opts.Log.Warn("requests still running at shutdown are cut off", "after", s.opts.ShutdownTimeout)
		return srv.Close()
	}
	return err
}

// listener is what a request knows of the listener that it came by.
type listener struct {
	loopback bool
	// onlyPolls and noPolls divide the requests among two listeners.
	onlyPolls, noPolls bool
}

type listenerKey struct{}

// listenerOf returns the listener of a request; zero for a request that came by none.
func listenerOf(r *http.Request) listener {
	l, _ := r.Context().Value(listenerKey{}).(listener)
	return l
}

// context returns the base context of a listener's requests.
func (l Listeners) context(of net.Listener) context.Context {
	addr, ok := of.Addr().(*net.TCPAddr)
	ctx := context.WithValue(context.Background(), listenerKey{}, listener{
		loopback: ok && addr.IP.IsLoopback(), onlyPolls: of == l.Discovery, noPolls: of == l.API && l.Discovery != nil,
	})
	if slices.Contains(l.Private, of) {
		ctx = rest.Private(ctx)
	}
	return ctx
}

// onlyOfListener refuses requests that are for another listener.
func (s *Server) onlyOfListener(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch l := listenerOf(r); {
		case l.onlyPolls && !rest.IsPoll(r.URL.Path) && !isHealth(r.URL.Path):
			s.fail(w, r, wire.Failure(http.StatusNotFound, metav1.StatusReasonNotFound, "this address is for the polls of Envoys: everything else is at --listen"))
		case l.noPolls && rest.IsPoll(r.URL.Path):
			s.fail(w, r, wire.Failure(http.StatusNotFound, metav1.StatusReasonNotFound, "the polls of Envoys are answered at --discovery-listen"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isHealth reports whether a path is one of mountHealth.
func isHealth(path string) bool {
	return strings.HasPrefix(path, "/healthz") || strings.HasPrefix(path, "/livez") || strings.HasPrefix(path, "/readyz")
}
