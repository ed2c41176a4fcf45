package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdCommand makes the test binary an etcd (see TestMain): what else would there be to kill
// and to freeze, without asking for one to be installed?
const etcdCommand = "run-etcd"

func runEtcd(dir, clients, peers string) error {
	client, err := url.Parse(clients)
	if err != nil {
		return err
	}
	peer, err := url.Parse(peers)
	if err != nil {
		return err
	}
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return err
	}
}

// externalEtcd is an etcd as a process of its own.
type externalEtcd struct {
	dir, clients, peers string
	*process
}

// startEtcd runs an etcd that ends with the test.
func startEtcd(t *testing.T) *externalEtcd {
	t.Helper()
	e := &externalEtcd{dir: t.TempDir(), clients: freeURL(t), peers: freeURL(t)}
	if err := e.restart(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.stop() })
	return e
}

// restart starts it with the data it had.
func (e *externalEtcd) restart() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	e.process, err = start(context.Background(), e.dir, "etcd", self,
		etcdCommand, filepath.Join(e.dir, "data"), e.clients, e.peers)
	return err
}

func freeURL(t *testing.T) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", port)
}
