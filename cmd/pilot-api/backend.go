package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

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

func (b backend) close(log *slog.Logger) {
	stop := b.client.Close
	if b.embedded != nil {
		stop = b.embedded.Close
	}
	if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
		log.Warn("closing etcd", "error", err)
	}
}
