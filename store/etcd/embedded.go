package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
)

// The limits of an embedded etcd.
const (
	// KeptRevisions of history stay readable: as far back goes a watch or an
	// exact list. Older ones are compacted, every five minutes.
	KeptRevisions = 10_000
	// QuotaBytes of data may be stored, then writes fail until somebody
	// makes room.
	QuotaBytes = 4 << 30
	// MaxRequestBytes bounds one transaction.
	MaxRequestBytes = 8 << 20
)

// EmbeddedOptions say where an embedded etcd lives.
type EmbeddedOptions struct {
	// Dir is the data folder, made if need be. One process at a time.
	Dir string
	Log *slog.Logger
}

// Embedded is a real etcd inside this process, a cluster of one. It listens on
// no port and no socket: Client calls it directly. What is acknowledged has
// been synced to disk.
type Embedded struct {
	etcd   *embed.Etcd
	client *clientv3.Client
	lock   *os.File
	end    *ending
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
	end := newEnding()
	etcd, err := startInspected(ctx, opts, end)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", opts.Dir, err)
	}
	e := &Embedded{etcd: etcd, lock: lock, client: v3client.New(etcd.Server), end: end}
	select {
	case <-etcd.Server.ReadyNotify():
		go func() {
			<-etcd.Server.StopNotify()
			end.stop(errors.New("etcd was stopped"))
		}()
		return e, nil
	case <-end.done:
		e.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", opts.Dir, whileStarting(end.err))
	case err := <-etcd.Err():
		e.Close()
		return nil, fmt.Errorf("etcd in %s ended while starting: %w", opts.Dir, err)
	case <-ctx.Done():
		e.Close()
		return nil, fmt.Errorf("etcd in %s did not get ready: %w", opts.Dir, ctx.Err())
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
	cfg.AutoCompactionMode = embed.CompactorModeRevision
	cfg.AutoCompactionRetention = strconv.Itoa(KeptRevisions)
	cfg.QuotaBackendBytes = QuotaBytes
	cfg.MaxRequestBytes = MaxRequestBytes
	// A cluster of one elects itself as soon as it may: no need to wait for
	// others for a whole second.
	cfg.TickMs, cfg.ElectionMs = 20, 200
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapLogger(opts.Log, zap.WithPanicHook(lastWords{end}), zap.WithFatalHook(lastWords{end})))
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

// Close stops etcd, waits until all is written and closed, and gives the data
// folder free. After a failure of etcd there is nothing to wait for: then the
// folder is free when the process has ended. Call it once.
func (e *Embedded) Close() error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		e.client.Close()
		e.etcd.Close()
	}()
	select {
	case <-closed:
		return e.lock.Close()
	case <-e.end.failed:
		return nil
	}
}
