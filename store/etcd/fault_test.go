package etcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestWithoutEtcd checks that every call fails within its deadline, and works again
// once etcd is back. A create sends its write first, so its outcome is unknown.
func TestWithoutEtcd(t *testing.T) {
	server := etcdtest.Start(t)
	s := etcd.New(server.Client(), etcd.DefaultPrefix, quiet)
	made, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	calls := map[string]func(ctx context.Context) error{
		"create": func(ctx context.Context) error {
			_, err := s.Create(ctx, storetest.Rule(t, "default", "b", 1))
			return err
		},
		"update": func(ctx context.Context) error { _, err := s.Update(ctx, made); return err },
		"delete": func(ctx context.Context) error {
			_, err := s.Delete(ctx, made.Key(), store.Preconditions{})
			return err
		},
		"get":      func(ctx context.Context) error { _, err := s.Get(ctx, made.Key(), store.ReadOptions{}); return err },
		"list":     func(ctx context.Context) error { _, err := s.List(ctx, store.Scope{}, store.ListOptions{}); return err },
		"watch":    func(ctx context.Context) error { _, err := s.Watch(ctx, store.Scope{}, 0); return err },
		"revision": func(ctx context.Context) error { _, err := s.Revision(ctx); return err },
	}
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		want := store.ErrUnavailable
		if name == "create" {
			want = store.ErrOutcomeUnknown
		}
		err := call(ctx)
		if !errors.Is(err, want) {
			t.Errorf("%s without etcd: %v", name, err)
		}
		if e, ok := errors.AsType[*store.Error](err); !ok || e.Op == "" || !strings.HasPrefix(e.Error(), e.Op) {
			t.Errorf("%s without etcd: the error does not name the operation: %v", name, err)
		}
		cancel()
	}
	server.Restart()
	if _, err := s.Get(t.Context(), made.Key(), store.ReadOptions{}); err != nil {
		t.Errorf("get after the restart: %v", err)
	}
}

// TestOverdueWrite checks that a write whose own work took all of its time does not
// blame etcd.
func TestOverdueWrite(t *testing.T) {
	s := etcd.New(etcdtest.Start(t).Client(), etcd.DefaultPrefix, quiet)
	made, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = s.UpdateFunc(ctx, made.Key(), func(*schema.Object) (*schema.Object, error) {
		<-ctx.Done()
		return storetest.Rule(t, "default", "a", 2), nil
	})
	if errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "took too long") {
		t.Errorf("got %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	s := etcd.New(etcdtest.Start(t).Client(), etcd.DefaultPrefix, quiet)
	if _, err := s.Create(t.Context(), storetest.Large(t, "default", "large", embedded.MaxRequestBytes)); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// TestSlowReaderIsCutOff checks that a watch that is not read ends, and that what it
// holds is bounded.
func TestSlowReaderIsCutOff(t *testing.T) {
	outside.Slow(t)
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, etcd.DefaultPrefix, quiet)
	w, err := s.Watch(t.Context(), store.Scope{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 0)); err != nil {
		t.Fatal(err)
	}
	for i := 1; w.Err() == nil; i++ {
		if _, err := s.Update(t.Context(), storetest.Rule(t, "default", "a", i)); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(w.Err(), store.ErrSlow) {
		t.Errorf("ended with %v", w.Err())
	}
}

// TestForeignValues checks that values that pilot-api cannot read neither hide others
// nor end a watch.
func TestForeignValues(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, etcd.DefaultPrefix, quiet)
	w, err := s.Watch(t.Context(), store.Scope{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	put(t, client, etcd.DefaultPrefix+"/objects/config.istio.io/routerules/default/broken", "{")
	put(t, client, "/elsewhere", "{}")
	made, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.List(t.Context(), store.Scope{}, store.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	for b := range w.Batches() {
		if len(b.Events) == 0 {
			continue
		}
		if b.Events[0].Object.Key() != made.Key() {
			t.Errorf("watch told of %v", b.Events)
		}
		return
	}
	t.Errorf("watch ended with %v", w.Err())
}

func put(t *testing.T, client *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := client.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}
