package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestMigrateBesideAServer checks that, whenever a migration claims a target to which a
// server is about to write, one of the two continues and the other gets an error.
func TestMigrateBesideAServer(t *testing.T) {
	from := etcdtest.Start(t).Client()
	source := etcd.New(from, etcd.DefaultPrefix, quiet)
	if _, err := source.Create(t.Context(), storetest.Rule(t, "default", "old", 1)); err != nil {
		t.Fatal(err)
	}
	for before := range 10 {
		target := etcdtest.Start(t)
		beside := startBeside(t.Context(), etcd.Migration{From: from, To: target.Client(), Prefix: etcd.DefaultPrefix})
		client := target.Client()
		requests := &interrupted{KV: client.KV, left: before, then: beside.claim}
		client.KV = requests
		server := etcd.New(client, etcd.DefaultPrefix, quiet)
		_, asked := server.Delete(t.Context(), storetest.Rule(t, "default", "none", 1).Key(), store.Preconditions{})
		if !errors.Is(asked, store.ErrNotFound) && !errors.Is(asked, store.ErrUnavailable) {
			t.Fatal(asked)
		}
		_, wrote := server.Create(t.Context(), storetest.Rule(t, "default", "early", 1))
		if requests.left >= 0 {
			if before == 0 {
				t.Fatal("the server asks for nothing")
			}
			return // The migration would come after all requests.
		}
		migrated := beside.finish()
		switch {
		case migrated == nil && errors.Is(wrote, store.ErrUnavailable):
		case errors.Is(migrated, etcd.ErrNotEmpty) && wrote == nil:
		default:
			t.Errorf("a migration before request %d: %v, the write: %v", before, migrated, wrote)
		}
	}
	t.Error("a write of more requests than are interrupted")
}

// beside is a migration of one step, which pauses after that step.
type beside struct {
	begin, claimed, goOn chan struct{}
	done                 chan error
}

func startBeside(ctx context.Context, m etcd.Migration) *beside {
	b := &beside{make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan error, 1)}
	m.Progress = func(int, int) {
		close(b.claimed)
		<-b.goOn
	}
	go func() {
		select {
		case <-b.begin:
			_, err := m.Run(ctx)
			b.done <- err
		case <-ctx.Done():
		}
	}()
	return b
}

// claim starts the migration and returns when it has claimed the target or was refused.
func (b *beside) claim() {
	close(b.begin)
	select {
	case <-b.claimed:
	case err := <-b.done:
		b.done <- err
	}
}

func (b *beside) finish() error {
	close(b.goOn)
	return <-b.done
}

// interrupted calls a function before one of the requests.
type interrupted struct {
	clientv3.KV
	left int
	then func()
}

func (i *interrupted) count() {
	if i.left--; i.left == -1 {
		i.then()
	}
}

func (i *interrupted) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	i.count()
	return i.KV.Get(ctx, key, opts...)
}

func (i *interrupted) Txn(ctx context.Context) clientv3.Txn {
	i.count()
	return i.KV.Txn(ctx)
}

// TestMigrateBesideASweep checks that a sweep does not drop records whose object is not
// copied yet as those of a deleted object.
func TestMigrateBesideASweep(t *testing.T) {
	from := etcdtest.Start(t).Client()
	source := etcd.New(from, etcd.DefaultPrefix, quiet)
	for i, write := range []func(context.Context, *schema.Object) (*schema.Object, error){source.Create, source.Update} {
		if _, err := write(t.Context(), storetest.Rule(t, "default", "a", i)); err != nil {
			t.Fatal(err)
		}
	}
	to := etcdtest.Start(t).Client()
	server := etcd.New(to, etcd.DefaultPrefix, quiet)
	var swept error
	_, err := etcd.Migration{From: from, To: to, Prefix: etcd.DefaultPrefix, Progress: func(done, total int) {
		if done == 1 {
			swept = etcd.Sweep(server, t.Context(), time.Now().Add(31*24*time.Hour))
		}
	}}.Run(t.Context())
	if err != nil || !errors.Is(swept, store.ErrUnavailable) {
		t.Errorf("a migration beside a sweep: %v, the sweep: %v", err, swept)
	}
}
