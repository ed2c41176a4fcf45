package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
)

// run is the program as a list: etcd, the store over it, the cache that
// follows the store, the discovery server that follows the cache, and the
// HTTP server that everybody talks to. It returns when ctx ends, or when one
// of them fails.
func run(ctx context.Context, o options, log *slog.Logger) error {
	settings, err := o.settings(log)
	if err != nil {
		return err
	}
	// The port first: a taken one should be an error before etcd starts.
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	defer listener.Close()
	client, closeEtcd, err := openEtcd(ctx, o, log)
	if err != nil {
		return err
	}
	defer closeEtcd()

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	objects := etcd.New(client, o.etcdPrefix, log)
	view := cache.New(objects, cache.Options{Log: log})
	proxies := discovery.New(discovery.Options{Source: view, Settings: settings, Log: log, Registry: registry})
	api := server.New(server.Options{
		Store:     store.Strict(objects),
		Reads:     view,
		Discovery: proxies,
		Ready:     readiness(objects, view, proxies),
		Registry:  registry,
		Log:       log,
		Version:   versionInfo(),
	})

	log.Info("pilot-api is listening", "address", listener.Addr().String(), "version", version, "store", o.storeName())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return view.Run(ctx) })
	group.Go(func() error { return proxies.Run(ctx) })
	group.Go(func() error { return api.Serve(ctx, listener) })
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	log.Info("pilot-api has stopped")
	return err
}

// openEtcd starts the embedded etcd or connects to the external one.
func openEtcd(ctx context.Context, o options, log *slog.Logger) (*clientv3.Client, func(), error) {
	if len(o.etcdEndpoints) == 0 {
		embedded, err := etcd.StartEmbedded(ctx, etcd.EmbeddedOptions{Dir: o.dataDir, Log: log})
		if err != nil {
			return nil, nil, err
		}
		return embedded.Client(), func() { logClose(log, embedded.Close()) }, nil
	}
	client, err := etcd.Dial(ctx, etcd.DialOptions{
		Endpoints:    o.etcdEndpoints,
		CAFile:       o.etcdCA,
		CertFile:     o.etcdCert,
		KeyFile:      o.etcdKey,
		Username:     o.etcdUser,
		PasswordFile: o.etcdPassword,
		Log:          log,
	})
	if err != nil {
		return nil, nil, err
	}
	return client, func() { logClose(log, client.Close()) }, nil
}

func logClose(log *slog.Logger, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Warn("closing etcd", "error", err)
	}
}

// readiness is what /readyz checks, in the order in which things come up.
func readiness(objects store.Reader, view *cache.Cache, proxies *discovery.Server) []server.Check {
	return []server.Check{
		{Name: "store", Run: func(ctx context.Context) error {
			_, err := objects.Revision(ctx)
			return err
		}},
		{Name: "cache", Run: func(context.Context) error {
			return failUnless(view.HasSynced(), "the cache has not read the store yet")
		}},
		{Name: "discovery", Run: func(context.Context) error {
			return failUnless(proxies.Ready(), "the first snapshot has not been compiled yet")
		}},
	}
}

func failUnless(ok bool, why string) error {
	if ok {
		return nil
	}
	return errors.New(why)
}

func versionInfo() apiversion.Info {
	return apiversion.Info{
		GitVersion: version,
		GoVersion:  runtime.Version(),
		Compiler:   runtime.Compiler,
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}
}
