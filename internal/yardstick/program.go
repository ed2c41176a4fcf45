package yardstick

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// Arguments that make a program which calls Run a yardstick.
const (
	etcdCommand = "run-yardstick-etcd" // ADDRESS DIR
	thinCommand = "run-yardstick-thin" // ADDRESS ETCD
)

// Run must be the first call of main or TestMain. It returns at once unless the program
// was started as a yardstick.
func Run() {
	if len(os.Args) != 4 {
		return
	}
	roles := map[string]func(context.Context, string, string) error{etcdCommand: runEtcd, thinCommand: runThin}
	role, ok := roles[os.Args[1]]
	if !ok {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := role(ctx, os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runEtcd runs an etcd with one member and default settings, so it syncs to disk.
func runEtcd(ctx context.Context, address, dir string) error {
	config := embed.NewConfig()
	config.Dir, config.LogLevel = dir, "error"
	config.ListenPeerUrls = nil
	config.ListenClientUrls = []url.URL{{Scheme: "http", Host: address}}
	config.AdvertiseClientUrls = config.ListenClientUrls
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return err
	}
}

func runThin(ctx context.Context, address, endpoint string) error {
	client, err := dial(endpoint)
	if err != nil {
		return err
	}
	defer client.Close()
	server := &http.Server{Addr: address, Handler: newThin(client)}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func dial(endpoint string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
}

// Program is a running yardstick.
type Program struct {
	*testbed.Process
	Address string // host:port
}

// StartEtcd starts an etcd and waits until it answers.
func StartEtcd(ctx context.Context, dir, name string) (*Program, error) {
	p, err := start(dir, name, etcdCommand, filepath.Join(dir, "data-"+name))
	if err != nil {
		return nil, err
	}
	client, err := dial(p.Address)
	if err != nil {
		return p, err
	}
	defer client.Close()
	return p, p.Until(ctx, name, func(ctx context.Context) error {
		_, err := client.Get(ctx, "k")
		return err
	})
}

// StartThin starts the thin handler over an etcd and waits until it answers.
func StartThin(ctx context.Context, dir string, over *Program) (*Program, error) {
	p, err := start(dir, "thin", thinCommand, over.Address)
	if err != nil {
		return nil, err
	}
	return p, p.Until(ctx, "thin", func(context.Context) error {
		c, err := Dial(p.Address)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

func start(dir, name, command, arg string) (*Program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address, err := testbed.FreeAddress()
	if err != nil {
		return nil, err
	}
	p := &Program{testbed.NewProcess(dir, name, self, command, address, arg), address}
	return p, p.Start()
}
