package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/server/ads"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/etcd/roster"
)

// run wires up the program: etcd, the store over it, the cache that follows the store,
// the discovery server that follows the cache, and the HTTP server for all clients. It
// returns when ctx ends or one of them fails.
func run(ctx context.Context, o options, log *slog.Logger) error {
	settings, err := o.settings(log)
	if err != nil {
		return err
	}
	long := admission.NewLong(runtime.GOMAXPROCS(0))
	o.limits.apply(log)
	settings.Budget = settings.Budget.Or(budget())
	certificates := rotation.New(o.certificateFiles(settings), log)
	// Listen first, so that a port in use is an error before etcd starts.
	registry := prometheus.NewRegistry()
	signing, err := o.newAuthority(settings.SPIFFETrustDomain(), certificates, log, registry)
	if err != nil {
		return err
	}
	at, err := o.listenAll(certificates, signing)
	if err != nil {
		return err
	}
	defer at.close()
	backend, err := openEtcd(ctx, o, log)
	if err != nil {
		return err
	}
	defer backend.close(log)
	local := o.openSockets(log)
	defer local.remove()

	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	objects := backend.store(o, log)
	cached := cache.New(objects, cache.Options{Log: log})
	objects.Guess(cached.Peek)
	lag := cache.NewProbe(cached)
	registerStoreMetrics(registry, backend, cached, lag)
	memory := o.rememberSettings(settings.PrivateFolders, log)
	registerCertificateMetrics(registry, certificates)
	others, stay, err := backend.replicas(o, o.advertised(at.api.Addr()), registry, log)
	if err != nil {
		return err
	}
	users, err := o.newAccess(at.apiTLS, backend, others.key(), log, registry)
	if err != nil {
		return err
	}
	known := newInventory(roster.New(backend.client, o.etcdPrefix, o.keepDisconnected, log), others, backend.embedded != nil, log)
	proxies := discovery.New(discovery.Options{
		Source: cached, CatchUp: cached.CatchUp, LeftOut: leftOut(cached), Settings: settings, Files: secretFiles{certificates, settings.SecretFiles}, PastSettings: memory.past(), Log: log, Registry: registry,
		MaxResults: maxResults(availableMemory()), EnterLarge: long.EnterOwing,
		AbsentFor: o.keepDisconnected, Alone: backend.embedded != nil, Others: known,
	})
	rosterRevision := known.load(ctx, proxies)
	events, err := o.access.openAudit(log, registry)
	if err != nil {
		return err
	}
	if events != nil {
		users.followers = append(users.followers, events.Run)
	}
	users.follow(cached)
	roles, hosts := o.followRoles(cached, users.known)
	users.known.all()
	if roles != nil {
		users.followers = append(users.followers, func(ctx context.Context) error { return keepBuiltIns(ctx, store.Strict(objects), log) })
	}
	proxyCertificates, err := authn.NewCertificates(authn.CertificateOptions{Authorities: at.proxyAuthorities, Log: log})
	if err != nil {
		return err
	}
	if err := signing.keptIn(backend, &o, log); err != nil {
		return err
	}
	if signing.run != nil {
		users.followers = append(users.followers, signing.run)
	}
	prover := o.access.prover(users, proxyCertificates, roles, settings.SPIFFETrustDomain())
	api := server.New(server.Options{
		Long:      long,
		Store:     store.Strict(objects),
		Reads:     cached,
		Discovery: proxies,
		Authn:     users.authn,

		AccessKnown: users.known.is,

		Audit:    events,
		Proxies:  prover,
		Tokens:   users.tokens,
		Roles:    roles,
		Hosts:    hosts,
		Domain:   o.domain,
		Peers:    others,
		Ready:    readiness(backend, lag, users.known, proxies, others),
		Registry: registry,
		Log:      log,
		Version:  versionInfo(),

		MaxTransaction: backend.limits(o).Ops,
		Sockets:        local.addresses(at.streams),
		ProxyReturn:    proxyReturn,
		HostNames:      o.limits.hostNames,
		MaxConnections: o.maxConnections(),
		Users:          o.limits.users(),
	})

	log.Info("pilot-api is listening", "address", at.api.Addr().String(), "version", version, "store", o.storeName())
	fronts := []func(context.Context) error{func(ctx context.Context) error { return api.ServeOn(ctx, at.listeners(local.http.listeners())) }}
	if at.streams != nil {
		log.Info("pilot-api streams to Envoys", "address", at.streams.Addr().String())
		front := ads.New(ads.Options{Discovery: proxies, Proxies: prover, Certificates: proxyCertificates.Verify, Services: signing.services(users, proxyCertificates, settings.SPIFFETrustDomain(), events, log), TLS: at.streamConfig(), Log: log, Registry: registry, MaxConnections: o.maxConnections(), Memory: o.limits.streamMemory()})
		fronts = append(fronts, func(ctx context.Context) error {
			if err := users.known.wait(ctx); err != nil {
				return err // Until then, no proxy proves anything.
			}
			return front.Serve(ctx, at.streams, local.grpc.listeners()...)
		})
	}
	go tidyUp(ctx)
	followers := append(users.followers, cached.Run, lag.Run, proxies.Run, backend.watch, stay,
		func(ctx context.Context) error { return known.run(ctx, rosterRevision) },
		objects.KeepHistory, certificates.Run,
		func(ctx context.Context) error { return backend.admin(ctx, o, log) },
		func(ctx context.Context) error { return memory.run(ctx, proxies.Ready) },
		func(ctx context.Context) error { return greet(ctx, o, objects, log) })
	err = serve(ctx, fronts, followers...)
	log.Info("pilot-api has stopped")
	return err
}

// proxyReturn is about the longest time that an Envoy waits before it retries a server
// that was away.
const proxyReturn = 30 * time.Second

// serve runs all fronts and followers until ctx ends. The followers outlive the fronts,
// so that requests in flight at the end still find a cache that is kept up to date.
// serve ends everything if a follower or a front fails.
func serve(ctx context.Context, fronts []func(context.Context) error, followers ...func(context.Context) error) error {
	group, running := errgroup.WithContext(context.WithoutCancel(ctx))
	behind, stop := context.WithCancel(running)
	for _, follow := range followers {
		group.Go(func() error { return unlessCanceled(follow(behind)) })
	}
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	defer context.AfterFunc(running, stopServing)()
	var open sync.WaitGroup
	for _, front := range fronts {
		open.Add(1)
		group.Go(func() error {
			defer open.Done()
			return unlessCanceled(front(serving))
		})
	}
	go func() {
		open.Wait()
		stop()
	}()
	return group.Wait()
}

func unlessCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// backend is the etcd in use.
type backend struct {
	client   *clientv3.Client
	embedded *embedded.Etcd // nil if etcd is external
	alarms   *etcd.Alarms   // nil if etcd is embedded
}

// openEtcd starts the embedded etcd or connects to the external one.
func openEtcd(ctx context.Context, o options, log *slog.Logger) (backend, error) {
	if len(o.etcdEndpoints) == 0 {
		return startEmbedded(ctx, o, log)
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
		return backend{}, err
	}
	return backend{client: client, alarms: etcd.NewAlarms(client)}, nil
}

// startEmbedded starts the embedded etcd on the existing store, if there is one.
func startEmbedded(ctx context.Context, o options, log *slog.Logger) (backend, error) {
	if err := o.refuseEmptied(); err != nil {
		return backend{}, err
	}
	db, err := embedded.Start(ctx, embedded.Options{Dir: o.dataDir, Log: log, QuotaBytes: o.quotaBytes})
	if err != nil {
		return backend{}, err
	}
	b := backend{client: db.Client(), embedded: db}
	if err := etcd.Holds(ctx, db.Client(), o.etcdPrefix); err != nil {
		b.close(log)
		return backend{}, fmt.Errorf("the data in %s: %w", o.dataDir, err)
	}
	return b, nil
}

// refuseEmptied prevents a server from starting without data in a folder where a
// server ran before. It would send proxies a mesh without objects.
func (o *options) refuseEmptied() error {
	if _, err := os.Stat(filepath.Join(o.dataDir, settingsFile)); err != nil {
		return nil
	}
	member := filepath.Join(o.dataDir, "member")
	if files, err := os.ReadDir(member); err == nil && len(files) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil // etcd reports whether it can be read.
	}
	return fmt.Errorf("%w: a server ran on %s, whose objects are gone (%s): put them back, from a backup with 'pilot-api snapshot restore' into a new folder, or remove all of the folder to begin anew",
		embedded.ErrFailed, o.dataDir, member)
}

// limits returns the limits of the etcd, with those that the options set.
func (b backend) limits(o options) etcd.Limits {
	limits := etcd.DefaultLimits
	if b.embedded != nil {
		limits = etcd.EmbeddedLimits
	}
	limits.History = o.history
	limits.Ops = cmp.Or(o.maxTransaction, limits.Ops)
	return limits
}

// store returns the store of objects in the etcd, with its limits set.
func (b backend) store(o options, log *slog.Logger) *etcd.Store {
	objects := etcd.New(b.client, o.etcdPrefix, log)
	if b.embedded != nil {
		objects = etcd.NewEmbedded(b.embedded, o.etcdPrefix, log)
	}
	objects.Limit(b.limits(o))
	return objects
}

// watch follows the state of etcd. It fails when the embedded etcd ends by itself, for
// example on a full disk, because the process cannot go on without it.
func (b backend) watch(ctx context.Context) error {
	if b.embedded == nil {
		return b.alarms.Run(ctx)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.embedded.Done():
		return fmt.Errorf("the embedded etcd has ended: %w", b.embedded.Err())
	}
}

// admin serves commands on this machine that need the embedded etcd.
func (b backend) admin(ctx context.Context, o options, log *slog.Logger) error {
	if b.embedded == nil {
		return nil
	}
	return admin{b.embedded, o.etcdPrefix, o.dataDir, log, patience}.Run(ctx)
}

// greetTimeout is the time that an external etcd has for its first answer before the
// log says that the server is waiting for it.
const greetTimeout = 2 * time.Second

// greet logs early if the external etcd does not answer. Everything else waits for it
// silently.
func greet(ctx context.Context, o options, objects store.Reader, log *slog.Logger) error {
	if len(o.etcdEndpoints) == 0 {
		return nil
	}
	first, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	if _, err := objects.Revision(first); err != nil && ctx.Err() == nil {
		log.Warn("etcd does not answer; trying until it does", "endpoints", o.etcdEndpoints, "error", err)
	}
	return nil
}

func (b backend) close(log *slog.Logger) {
	stop := b.client.Close
	if b.embedded != nil {
		stop = b.embedded.Close
	}
	if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
		log.Warn("closing etcd", "error", err)
	}
}

func versionInfo() apiversion.Info {
	return apiversion.Info{
		GitVersion: version,
		GitCommit:  commit,
		GoVersion:  runtime.Version(),
		Compiler:   runtime.Compiler,
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}
}
