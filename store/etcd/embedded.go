package etcd

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
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/pilot-api/pilot-api/store"
)

// MaxRequestBytes bounds one transaction of an embedded etcd.
const MaxRequestBytes = 8 << 20

// maxTxnOps bounds the requests in one, as Limits.Ops needs them.
const maxTxnOps = 2*store.MaxTxnOps + 1

// What an embedded etcd keeps, if EmbeddedOptions do not say.
const (
	// DefaultQuotaBytes may be stored, present state and history together.
	DefaultQuotaBytes = 4 << 30
	// KeptRevisions, KeptBytes and KeptAge bound the history: as far back goes
	// a watch or an exact list.
	KeptRevisions = 50_000
	KeptBytes     = 64 << 20
	KeptAge       = 24 * time.Hour
)

// EmbeddedOptions say where an embedded etcd lives.
type EmbeddedOptions struct {
	// Dir is the data folder, made if need be. One process at a time.
	Dir string
	Log *slog.Logger
	// QuotaBytes is how much may be stored; 0 is DefaultQuotaBytes. What would
	// make the store grow beyond is refused with store.ErrFull.
	QuotaBytes int64
}

// Embedded is a real etcd inside this process, a cluster of one. It listens on
// no port and no socket: Client calls it directly. What is acknowledged has
// been synced to disk.
type Embedded struct {
	etcd   *embed.Etcd
	client *clientv3.Client
	lock   *os.File
	end    *ending
	keeper *keeper
	stop   func() // ends the keeper and waits for it
}

// StartEmbedded starts an etcd and waits until it is ready; ctx bounds the
// wait, not the life. It fails at once when another process has the folder.
func StartEmbedded(ctx context.Context, opts EmbeddedOptions) (*Embedded, error) {
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
	e := &Embedded{etcd: etcd, lock: lock, client: v3client.New(etcd.Server), end: end, stop: func() {}}
	if err := e.ready(ctx, opts); err != nil {
		e.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", opts.Dir, err)
	}
	return e, nil
}

// ready waits until etcd answers, then starts what runs beside it.
func (e *Embedded) ready(ctx context.Context, opts EmbeddedOptions) error {
	if err := e.awaitReady(ctx, opts.Log); err != nil {
		return err
	}
	go func() {
		<-e.etcd.Server.StopNotify()
		e.end.stop(errors.New("etcd was stopped"))
	}()
	return e.keep(ctx, opts)
}

// slowStart is a start of which people should know that it takes long.
const slowStart = 10 * time.Second

func (e *Embedded) awaitReady(ctx context.Context, log *slog.Logger) error {
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

// keep starts the keeper, and lets the client know the quota.
func (e *Embedded) keep(ctx context.Context, opts EmbeddedOptions) error {
	e.newKeeper(opts)
	if err := e.end.unless(ctx, func() error { return e.keeper.begin(ctx) }); err != nil {
		return err
	}
	e.client.KV = room{e.client.KV, e.keeper.quota}
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

func (e *Embedded) newKeeper(opts EmbeddedOptions) {
	limit := cmp.Or(opts.QuotaBytes, DefaultQuotaBytes)
	e.keeper = &keeper{
		server: e.etcd.Server, client: e.client, dir: opts.Dir, log: opts.Log, ledger: newLedger(),
		file:      semaphore.NewWeighted(everySnapshot),
		quota:     newQuota(limit, e.etcd.Server.Backend().SizeInUse),
		retention: retention{revisions: KeptRevisions, bytes: KeptBytes, age: KeptAge, quota: limit},
	}
}

func startInspected(ctx context.Context, opts EmbeddedOptions, end *ending) (*embed.Etcd, error) {
	if err := inspect(opts.Dir); err != nil {
		return nil, err
	}
	return startEtcd(ctx, embeddedConfig(opts, end), end)
}

func embeddedConfig(opts EmbeddedOptions, end *ending) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Dir = opts.Dir
	cfg.ListenPeerUrls, cfg.ListenClientUrls = nil, nil
	cfg.AutoCompactionRetention = "0" // See keeper.
	cfg.QuotaBackendBytes = -1        // See quota.
	boundRaftLog(cfg)
	cfg.MaxRequestBytes = MaxRequestBytes
	cfg.MaxTxnOps = maxTxnOps
	// A cluster of one elects itself as soon as it may: no need to wait for
	// others for a whole second.
	cfg.TickMs, cfg.ElectionMs = 50, 250
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapLogger(opts.Log, zap.WithPanicHook(fatalHook{end}), zap.WithFatalHook(fatalHook{end})))
	return cfg
}

// Client calls the embedded etcd in-process, without a network between. It is
// closed by Close.
func (e *Embedded) Client() *clientv3.Client { return e.client }

// Done is closed when etcd has ended, by Close or by a failure of its own,
// such as a disk that cannot be written: then the process cannot go on either.
func (e *Embedded) Done() <-chan struct{} { return e.end.done }

// Err is why Done was closed; nil until then.
func (e *Embedded) Err() error {
	select {
	case <-e.end.done:
		return e.end.err
	default:
		return nil
	}
}

// Usage is what etcd occupied when the keeper last looked, a moment ago.
func (e *Embedded) Usage() Usage { return *e.keeper.usage.Load() }

// Store is a store over the embedded etcd, with EmbeddedLimits, whose history
// gives way where the present state needs the room. One for an etcd: they do not
// know each other's.
func (e *Embedded) Store(prefix string, log *slog.Logger) *Store {
	s := New(e.client, prefix, log)
	s.Limit(EmbeddedLimits)
	s.memory = e.etcd.Server.KV()
	e.keeper.store.Store(s)
	return s
}

// closeLimit is far more than a stop takes, on any disk that still answers.
const closeLimit = time.Minute

// Close stops etcd, waits until all is written and closed, and gives the data
// folder free. After a failure of etcd there is nothing to wait for: then the
// folder is free when the process has ended. Call it once.
func (e *Embedded) Close() error {
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
