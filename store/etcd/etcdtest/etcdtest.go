// Package etcdtest runs a real etcd for tests, which a test can stop and restart.
package etcdtest

import (
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// startLimit is far more than a start takes on any machine.
const startLimit = 30 * time.Second

// Server is an etcd that listens on a socket file and does not sync to disk. It is not
// safe for concurrent use.
type Server struct {
	tb      testing.TB
	dir     string
	running *embed.Etcd
}

// Start runs an etcd until the test ends.
func Start(tb testing.TB) *Server {
	tb.Helper()
	// TempDir is too long: the name of a socket is limited to little more than 100
	// bytes.
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{tb: tb, dir: dir}
	tb.Cleanup(func() {
		s.Stop()
		os.RemoveAll(dir)
	})
	s.Restart()
	return s
}

// Endpoint returns the address for clients.
func (s *Server) Endpoint() string { return "unix://" + filepath.Join(s.dir, "client.sock") }

// Client returns a new client, which is closed when the test ends.
func (s *Server) Client() *clientv3.Client {
	s.tb.Helper()
	client, err := etcd.Dial(s.tb.Context(), etcd.DialOptions{
		Endpoints: []string{s.Endpoint()}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { client.Close() })
	return client
}

// Stop stops the server and its connections. Its data stays. etcd gives open watches
// five seconds to end by themselves, and accepts no new requests in that time.
func (s *Server) Stop() {
	if s.running != nil {
		s.running.Close()
		s.running = nil
	}
}

// Restart starts the server again with its data and waits until it is ready.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Stop()
	running, err := embed.StartEtcd(s.config())
	if err != nil {
		s.tb.Fatal(err)
	}
	s.running = running
	select {
	case <-running.Server.ReadyNotify():
	case <-time.After(startLimit):
		s.tb.Fatalf("etcd was not ready after %s", startLimit)
	}
}

func (s *Server) config() *embed.Config {
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(s.dir, "data")
	endpoint := url.URL{Scheme: "unix", Path: filepath.Join(s.dir, "client.sock")}
	cfg.ListenPeerUrls = nil
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{endpoint}, []url.URL{endpoint}
	cfg.TickMs, cfg.ElectionMs = 10, 100
	cfg.UnsafeNoFsync = true
	cfg.MaxRequestBytes = embedded.MaxRequestBytes
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	return cfg
}
