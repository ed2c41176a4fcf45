package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/storetest"
)

const mib = 1 << 20

// limited returns an embedded etcd with a quota, and a context that ends a test that
// hangs.
func limited(t *testing.T, dir string, quota int64) (context.Context, *embedded.Etcd, *etcd.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	e, err := embedded.Start(ctx, embedded.Options{Dir: dir, Log: quiet, QuotaBytes: quota})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return ctx, e, etcd.NewEmbedded(e, etcd.DefaultPrefix, quiet)
}

// TestRewriteLargeObject checks that replacing one large object repeatedly is never
// refused, however small the quota, because history is dropped. Neither the database
// nor the log grows with it.
func TestRewriteLargeObject(t *testing.T) {
	outside.Slow(t)
	dir := t.TempDir()
	const quota, times = 64 * mib, 150
	ctx, e, s := limited(t, dir, quota)
	if _, err := s.Create(ctx, storetest.Large(t, "default", "large", 900_000)); err != nil {
		t.Fatal(err)
	}
	for i := range times {
		if _, err := s.Update(ctx, storetest.Large(t, "default", "large", 900_000+i%2)); err != nil {
			t.Fatalf("update %d: %v", i, err)
		}
	}
	u := e.Usage()
	if u.Compactions == 0 || u.File > 2*quota {
		t.Errorf("usage %+v", u)
	}
	log, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(log) == 0 || len(log) > 6 {
		t.Errorf("%d files of the log, %v", len(log), err)
	}
}

// TestFullStore checks that a write that makes a full store grow is refused with the
// reason, that reads and deletes go on, and that deletes alone make room.
func TestFullStore(t *testing.T) {
	outside.Slow(t)
	ctx, e, s := limited(t, t.TempDir(), 16*mib)
	var kept []schema.Key
	for i, refused := 0, 0; refused < 3; i++ {
		obj, err := s.Create(ctx, storetest.Large(t, "default", fmt.Sprintf("large-%d", i), 500_000))
		if errors.Is(err, store.ErrFull) {
			t.Log(err)
			refused++ // The database may yet free what it holds in duplicate.
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, obj.Key())
	}
	if len(kept) < 25 {
		t.Errorf("full after %d objects of 500 KB", len(kept))
	}
	if list, err := s.List(ctx, store.Scope{}, store.ListOptions{}); err != nil || len(list.Items) != len(kept) {
		t.Errorf("list of a full store: %v", err)
	}
	for _, key := range kept[:5] {
		if _, err := s.Delete(ctx, key, store.Preconditions{}); err != nil {
			t.Fatalf("delete in a full store: %v", err)
		}
	}
	for i := range 3 {
		create := func() error {
			_, err := s.Create(ctx, storetest.Large(t, "default", fmt.Sprintf("after-%d", i), 500_000))
			return err
		}
		err := create()
		for errors.Is(err, store.ErrFull) && ctx.Err() == nil {
			err = create()
		}
		if err != nil {
			t.Fatalf("create after deletes: %v; %+v", err, e.Usage())
		}
	}
}

// TestBrickedByFormerVersion checks that data that etcd's own quota closed to all
// writes opens by itself, and that the history that filled it is dropped.
func TestBrickedByFormerVersion(t *testing.T) {
	outside.Slow(t)
	dir := t.TempDir()
	brick(t, dir, 32*mib)
	ctx, e, s := limited(t, dir, 24*mib)
	for u := e.Usage(); u.History > 16*mib || u.Compactions == 0; u = e.Usage() {
		if ctx.Err() != nil {
			t.Fatalf("history stays: %+v", u)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := s.Create(ctx, storetest.Rule(t, "default", "again", 1)); err != nil {
		t.Errorf("create: %v", err)
	}
}

// brick rewrites one key until etcd's own quota refuses every put.
func brick(t *testing.T, dir string, quota int64) {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.QuotaBackendBytes = dir, quota
	cfg.ListenPeerUrls, cfg.ListenClientUrls = nil, nil
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	<-server.Server.ReadyNotify()
	client := v3client.New(server.Server)
	defer client.Close()
	value := string(make([]byte, 500_000))
	for err == nil {
		_, err = client.Put(t.Context(), "/something", value)
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "member")); err != nil {
		t.Fatal(err)
	}
}
