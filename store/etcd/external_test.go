package etcd_test

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

func TestDialRefuses(t *testing.T) {
	endpoints := []string{"http://127.0.0.1:1"}
	for _, c := range []struct {
		opts etcd.DialOptions
		says string
	}{
		{etcd.DialOptions{}, "no etcd endpoint"},
		{etcd.DialOptions{Endpoints: endpoints, CertFile: "a"}, "needs its key"},
		{etcd.DialOptions{Endpoints: endpoints, KeyFile: "a"}, "needs its key"},
		{etcd.DialOptions{Endpoints: endpoints, Username: "root"}, "needs a password file"},
		{etcd.DialOptions{Endpoints: endpoints, PasswordFile: "a"}, "a password file a user"},
		{etcd.DialOptions{Endpoints: endpoints, CAFile: "no-such-file"}, "no-such-file"},
		{etcd.DialOptions{Endpoints: endpoints, Username: "root", PasswordFile: "no-such-file"}, "no-such-file"},
	} {
		c.opts.Log = quiet
		if _, err := etcd.Dial(t.Context(), c.opts); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: got %v, want %q in it", c.opts, err, c.says)
		}
	}
}

func TestDialAsUser(t *testing.T) {
	server := etcdtest.Start(t)
	requireUser(t, server.Client(), "root", "secret")
	dial := func(password string) (*clientv3.Client, error) {
		file := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return etcd.Dial(t.Context(), etcd.DialOptions{
			Endpoints: []string{server.Endpoint()}, Username: "root", PasswordFile: file, Log: quiet,
		})
	}
	if _, err := dial("wrong"); err == nil {
		t.Error("logged in with a wrong password")
	}
	client, err := dial("secret")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	checkWrites(t, client)
}

// TestDialAsUserWaits checks that Dial waits for an etcd that is not there yet, but
// only until its context ends.
func TestDialAsUserWaits(t *testing.T) {
	outside.Slow(t)
	server := etcdtest.Start(t)
	requireUser(t, server.Client(), "root", "secret")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "later.sock")
	var lines waitingLog
	dial := func(ctx context.Context) (*clientv3.Client, error) {
		return etcd.Dial(ctx, etcd.DialOptions{
			Endpoints: []string{"unix://" + socket}, Username: "root", PasswordFile: file, Log: slog.New(slog.NewTextHandler(&lines, nil)),
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	lines.then = cancel
	if _, err := dial(ctx); err == nil {
		t.Fatal("logged in where nobody is")
	}
	lines.then = func() {
		if err := os.Symlink(strings.TrimPrefix(server.Endpoint(), "unix://"), socket); err != nil {
			t.Error(err)
		}
	}
	client, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	checkWrites(t, client)
}

// waitingLog calls a function at the first log entry about waiting for etcd.
type waitingLog struct{ then func() }

func (l *waitingLog) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "waiting for it") && l.then != nil {
		l.then()
		l.then = nil
	}
	return len(line), nil
}

// requireUser gives an etcd a user with all rights and makes it refuse everyone else.
func requireUser(t *testing.T, client *clientv3.Client, name, password string) {
	t.Helper()
	ctx := t.Context()
	if _, err := client.UserAdd(ctx, name, password); err != nil {
		t.Fatal(err)
	}
	if _, err := client.UserGrantRole(ctx, name, "root"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AuthEnable(ctx); err != nil {
		t.Fatal(err)
	}
}

func checkWrites(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s := etcd.New(client, etcd.DefaultPrefix, quiet)
	if _, err := s.Create(ctx, storetest.Rule(t, "default", "a", 1)); err != nil {
		t.Error(err)
	}
}

func TestDialOverTLS(t *testing.T) {
	dir := t.TempDir()
	// Self-signed, and so its own authority; both sides use it.
	cert, err := transport.SelfCert(zap.NewNop(), dir, []string{"127.0.0.1:0"}, 1, x509.ExtKeyUsageClientAuth)
	if err != nil {
		t.Fatal(err)
	}
	cert.TrustedCAFile, cert.ClientCertAuth = cert.CertFile, true
	endpoint := startTLS(t, cert)
	client, err := etcd.Dial(t.Context(), etcd.DialOptions{
		Endpoints: []string{endpoint}, CAFile: cert.CertFile, CertFile: cert.CertFile, KeyFile: cert.KeyFile, Log: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	checkWrites(t, client)
}

// startTLS runs an etcd that requires client certificates, on its own port.
func startTLS(t *testing.T, cert transport.TLSInfo) string {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(t.TempDir(), "data")
	anyPort := url.URL{Scheme: "https", Host: "127.0.0.1:0"}
	cfg.ListenPeerUrls = nil
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{anyPort}, []url.URL{anyPort}
	cfg.ClientTLSInfo = cert
	cfg.TickMs, cfg.ElectionMs = 10, 100
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	running, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Close)
	<-running.Server.ReadyNotify()
	return "https://" + running.Clients[0].Addr().String()
}
