package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd/etcdlog"
)

// MaxRequestBytes is the maximum size of one transaction of an embedded etcd.
const MaxRequestBytes = 8 << 20

// maxTxnOps is the maximum number of requests in one transaction: each operation of the
// store needs two, and the transaction one more.
const maxTxnOps = 2*store.MaxTxnOps + 1

// The defaults of Options, and the bounds of the history.
const (
	// DefaultQuotaBytes bounds present state and history together.
	DefaultQuotaBytes = 4 << 30
	// KeptRevisions, KeptBytes and KeptAge bound the history, and so how far back a
	// watch or an exact list can start.
	KeptRevisions = 50_000
	KeptBytes     = 64 << 20
	KeptAge       = 24 * time.Hour
)

// Options configure an embedded etcd.
type Options struct {
	// Dir is the data folder. It is created if missing. Only one process may use it.
	Dir string
	Log *slog.Logger
	// QuotaBytes bounds the stored bytes; 0 means DefaultQuotaBytes. A write that would
	// exceed it fails with store.ErrFull.
	QuotaBytes int64
}

// Etcd is an etcd inside this process, a cluster of one. It listens on no port or
// socket; Client calls it directly. Acknowledged writes have been synced to disk.
type Etcd struct {
	etcd   *embed.Etcd
	client *clientv3.Client
	lock   *os.File
	end    *ending
	keeper *keeper
	stop   func() // stops the keeper and waits for it
}

// Start starts an etcd and waits until it is ready. ctx bounds the wait, not
// the lifetime. It fails immediately if another process uses the folder.
func Start(ctx context.Context, opts Options) (*Etcd, error) {
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	lock, err := lockFolder(opts.Dir)
	if err != nil {
		return nil, err
	}
	if err := refuseUnfinished(opts.Dir); err != nil {
		lock.Close()
		return nil, err
	}
	end := newEnding()
	etcd, err := startInspected(ctx, opts, end)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", opts.Dir, err)
	}
	e := &Etcd{etcd: etcd, lock: lock, client: v3client.New(etcd.Server), end: end, stop: func() {}}
	if err := e.ready(ctx, opts); err != nil {
		e.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", opts.Dir, err)
	}
	return e, nil
}

// ready waits until etcd answers, then starts the background work.
func (e *Etcd) ready(ctx context.Context, opts Options) error {
	if err := e.awaitReady(ctx, opts.Log); err != nil {
		return err
	}
	go func() {
		<-e.etcd.Server.StopNotify()
		e.end.stop(errors.New("etcd was stopped"))
	}()
	return e.keep(ctx, opts)
}

// slowStart is the time after which a slow start is logged.
const slowStart = 10 * time.Second

func (e *Etcd) awaitReady(ctx context.Context, log *slog.Logger) error {
	slow := time.NewTicker(slowStart)
	defer slow.Stop()
	for {
		select {
		case <-e.etcd.Server.ReadyNotify():
			return nil
		case <-e.end.done:
			return whileStarting(e.end.err)
		case err := <-e.etcd.Err():
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("it did not get ready: %w", ctx.Err())
		case <-slow.C:
			log.Warn("the embedded etcd is not ready yet: it reads its log and waits for the disk")
		}
	}
}

// keep starts the keeper and puts the quota in front of the client.
func (e *Etcd) keep(ctx context.Context, opts Options) error {
	e.newKeeper(opts)
	if err := e.end.unless(ctx, func() error { return e.keeper.begin(ctx) }); err != nil {
		return err
	}
	e.client.KV = KV{e.client.KV, e.keeper.quota}
	life, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.keeper.run(life)
	}()
	e.stop = func() {
		cancel()
		<-ended
	}
	return nil
}

func (e *Etcd) newKeeper(opts Options) {
	limit := cmp.Or(opts.QuotaBytes, DefaultQuotaBytes)
	e.keeper = &keeper{
		server: e.etcd.Server, client: e.client, dir: opts.Dir, log: opts.Log, ledger: newLedger(),
		file:      semaphore.NewWeighted(everySnapshot),
		quota:     newQuota(limit, e.etcd.Server.Backend().SizeInUse),
		retention: retention{revisions: KeptRevisions, bytes: KeptBytes, age: KeptAge, quota: limit},
	}
}

func startInspected(ctx context.Context, opts Options, end *ending) (*embed.Etcd, error) {
	if err := inspect(opts.Dir); err != nil {
		return nil, err
	}
	return startEtcd(ctx, embeddedConfig(opts, end), end)
}

func embeddedConfig(opts Options, end *ending) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Dir = opts.Dir
	cfg.ListenPeerUrls, cfg.ListenClientUrls = nil, nil
	cfg.AutoCompactionRetention = "0" // See keeper.
	cfg.QuotaBackendBytes = -1        // See quota.
	boundRaftLog(cfg)
	cfg.MaxRequestBytes = MaxRequestBytes
	cfg.MaxTxnOps = maxTxnOps
	// A cluster of one elects itself as soon as it may, so it need not wait a whole
	// second for others.
	cfg.TickMs, cfg.ElectionMs = 50, 250
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdlog.New(opts.Log, zap.WithPanicHook(fatalHook{end}), zap.WithFatalHook(fatalHook{end})))
	return cfg
}

// Client returns a client that calls the embedded etcd in this process, without a
// network. Close closes it.
func (e *Etcd) Client() *clientv3.Client { return e.client }

// Done returns a channel that is closed when etcd has ended, by Close or by a failure
// such as a disk that cannot be written. After a failure the process cannot go on.
func (e *Etcd) Done() <-chan struct{} { return e.end.done }

// Err returns why Done was closed; nil until then.
func (e *Etcd) Err() error {
	select {
	case <-e.end.done:
		return e.end.err
	default:
		return nil
	}
}

// Usage returns the space that etcd used when the keeper last measured it, a moment ago.
func (e *Etcd) Usage() Usage { return *e.keeper.usage.Load() }

// State returns the state that etcd has in memory. It holds every revision that was ever
// acknowledged or read.
func (e *Etcd) State() mvcc.KV { return e.etcd.Server.KV() }

// WhenCrowded makes the keeper call drop when the history records of objects use space that
// the present state needs. drop deletes some records and reports whether there were any.
func (e *Etcd) WhenCrowded(drop func(context.Context) (bool, error)) { e.keeper.drop.Store(&drop) }

// closeLimit is far more than a stop takes on any disk that still answers.
const closeLimit = time.Minute

// Close stops etcd, waits until all data is written and all files are closed, and releases
// the data folder. After a failure of etcd it does not wait, and the folder is released
// when the process ends. Call it once.
func (e *Etcd) Close() error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		e.stop()
		e.client.Close()
		e.etcd.Close()
	}()
	select {
	case <-closed:
		return e.lock.Close()
	case <-e.end.failed:
		return nil
	case <-time.After(closeLimit):
		return fmt.Errorf("etcd has not stopped after %s", closeLimit)
	}
}
