package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// tasksDir has a folder for each task, and the mesh settings of them all.
var tasksDir = filepath.Join(root, "examples", "tasks")

// Ports that Gateways of the tasks open.
const (
	httpEdge = "31380"
	tlsEdge  = "31390"
)

// taskWorld is the bookshop with a router at its edge and a street around it:
// hosts that are no part of the mesh. Connections of the front service may be
// captured, or come by its HTTP proxy port.
type taskWorld struct {
	*World
	router    *Sidecar
	authority *selfsigned.Authority
	certs     string            // Folder of the certificates.
	atEdge    bool              // The task that is tried opens ports of the router.
	here      *strings.Replacer // Puts this world's addresses and files for those of the tasks.
}

func openTaskWorld(t *testing.T) *taskWorld {
	t.Helper()
	w := &taskWorld{certs: t.TempDir()}
	w.authority = selfsigned.NewAuthority(t, w.certs)
	for _, host := range []string{"shop.example.com", "api.example.com", "library.example.com", "reader.example.com",
		"printer.example.com", "en.wiki.example.com", "de.wiki.example.com", "wiki.example.org"} {
		w.authority.Issue(t, host)
	}
	s := bookshop
	s.Mesh = w.meshSettings(t)
	w.World = open(t, s, func(ctx context.Context, world *World) error {
		w.World = world
		return w.enter(ctx, t)
	})
	// What is up is closed in order: this Envoy before its server.
	t.Cleanup(func() {
		if err := w.router.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("router:\n%s", w.router.Tail())
		}
	})
	w.openStreet(t)
	return w
}

// meshSettings are those of the tasks, with certificates where they are.
func (w *taskWorld) meshSettings(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tasksDir, "mesh.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mesh.yaml")
	if err := os.WriteFile(file, []byte(w.certificatesHere().Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (w *taskWorld) certificatesHere() *strings.Replacer {
	return strings.NewReplacer(".demo/certificates", w.certs)
}

// enter starts the Envoys.
func (w *taskWorld) enter(ctx context.Context, t *testing.T) error {
	if err := w.copyTasks(); err != nil {
		return err
	}
	front := redirecting(t, w.Pilot)
	var err error
	if w.Sidecar, err = StartSidecar(ctx, front, w.Dir, w.moved.Replace(node), "--api", "rest"); err != nil {
		return err
	}
	edge := filepath.Join(w.Dir, "edge")
	if err = os.Mkdir(edge, 0o700); err != nil {
		return err
	}
	if w.router, err = StartSidecar(ctx, w.Pilot, edge, w.moved.Replace(router), "--labels", "istio=ingressgateway"); err != nil {
		return err
	}
	return w.useProxyPort(ctx)
}

// copyTasks puts the tasks' files below tasks in the world's folder.
func (w *taskWorld) copyTasks() error {
	moves := []string{".demo/certificates", w.certs}
	for _, port := range []string{httpEdge, tlsEdge} {
		free, err := testbed.FreePort()
		if err != nil {
			return err
		}
		moves = append(moves, port, fmt.Sprint(free))
	}
	w.here = strings.NewReplacer(append(moves, "127.0.0.", strings.TrimSuffix(w.moved.Replace("127.0.0.9"), "9"))...)
	files, err := filepath.Glob(filepath.Join(tasksDir, "*", "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		copied := w.taskFile(filepath.Base(filepath.Dir(file)), strings.TrimSuffix(filepath.Base(file), ".yaml"))
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(copied, []byte(w.here.Replace(string(text))), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (w *taskWorld) taskFile(task, lesson string) string {
	return filepath.Join(w.Dir, "tasks", task, lesson+".yaml")
}

// settle returns when the Envoys that a task is about work by what has been
// written up to now. The router owns up to no version of its listeners before
// the first one opens.
func (w *taskWorld) settle(ctx context.Context) error {
	if err := w.Pilot.Published(ctx); err != nil {
		return err
	}
	defer w.client.CloseIdleConnections()
	if err := w.Sidecar.Settle(ctx); err != nil || !w.atEdge {
		return err
	}
	return w.router.Settle(ctx)
}

// learn applies a file of a task, and returns when it is worked by; nobody may
// have anything to say against it.
func (w *taskWorld) learn(t *testing.T, task, lesson string) {
	t.Helper()
	if _, err := w.Pilot.Istioctl(t.Context(), "apply", "-f", w.taskFile(task, lesson)); err != nil {
		t.Fatal(err)
	}
	if err := w.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	problems, err := w.Pilot.Istioctl(t.Context(), "problems", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(problems), `"message"`) {
		t.Errorf("istioctl problems:\n%s", problems)
	}
}

// forget deletes all that a task has applied.
func (w *taskWorld) forget(t *testing.T, task string) {
	t.Helper()
	if _, err := w.Pilot.Istioctl(t.Context(), "delete", "--ignore-not-found", "-f", filepath.Join(w.Dir, "tasks", task)); err != nil {
		t.Fatal(err)
	}
	if err := w.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// openStreet opens the hosts outside.
func (w *taskWorld) openStreet(t *testing.T) {
	t.Helper()
	authorities := x509.NewCertPool()
	authorities.AddCert(w.authority.Certificate)
	w.openTill(t, "127.0.0.51:9000", "v1")
	w.openTill(t, "127.0.0.52:9000", "v2")
	w.serve(t, "127.0.0.71:8000", "library", nil)
	w.serve(t, "127.0.0.71:8443", "library", &tls.Config{
		Certificates: []tls.Certificate{w.certificate(t, "library.example.com")},
		ClientAuth:   tls.VerifyClientCertIfGiven, ClientCAs: authorities,
	})
	w.serve(t, "127.0.0.61:9443", "printer", w.showing(t, "printer.example.com"))
	for address, host := range map[string]string{
		"127.0.0.81:8443": "en.wiki.example.com", "127.0.0.82:8443": "de.wiki.example.com", "127.0.0.83:8443": "wiki.example.org",
	} {
		w.serve(t, address, host, w.showing(t, host))
	}
}

// serve opens a backend that is asked over TLS if secured is not nil. The
// version in its answers is how it was asked.
func (w *taskWorld) serve(t *testing.T, address, service string, secured *tls.Config) {
	t.Helper()
	l, err := net.Listen("tcp", w.here.Replace(address))
	if err != nil {
		t.Fatal(err)
	}
	if secured != nil {
		l = tls.NewListener(l, secured)
	}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.Shop.backend(service, askedOver(r.TLS)).ServeHTTP(rw, r)
	})}
	go server.Serve(l) // Ends with the test.
	t.Cleanup(func() { server.Close() })
}

// askedOver says what a connection was: plain, or the name asked for and the
// host that the client says it is.
func askedOver(state *tls.ConnectionState) string {
	if state == nil {
		return "plain"
	}
	how := "TLS for " + state.ServerName
	if len(state.PeerCertificates) > 0 {
		how += " by " + state.PeerCertificates[0].DNSNames[0]
	}
	return how
}

// showing is TLS with the certificate of the host.
func (w *taskWorld) showing(t *testing.T, host string) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{w.certificate(t, host)}}
}

func (w *taskWorld) certificate(t *testing.T, host string) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(w.certs, host+".crt"), filepath.Join(w.certs, host+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// openTill is a version of the till: it greets each connection with its name.
func (w *taskWorld) openTill(t *testing.T, address, version string) {
	t.Helper()
	l, err := net.Listen("tcp", w.here.Replace(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(conn, version)
			conn.Close()
		}
	}()
}
