package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// These are the sizes of the tests of many watches.
const (
	resumers = 60
	pastWork = 300 // changes before the watches begin
	newWork  = 200 // and while they catch up
)

func TestManyWatchesResumeOverGRPC(t *testing.T) {
	outside.Slow(t)
	resumeMany(t, etcdtest.Start(t).Client())
}

func TestManyWatchesResumeInProcess(t *testing.T) {
	resumeMany(t, startEmbedded(t, t.TempDir()).Client())
}

// resumeMany makes many watches of one client resume from different revisions, all
// requesting progress, beside a writer. Each must get every change once and in order.
// None may use another's progress as its own or wait for another.
func resumeMany(t *testing.T, client *clientv3.Client) {
	s := etcd.New(client, "/resume", quiet)
	revisions := []int64{create(t, s, 0)}
	for i := 1; i < pastWork; i++ {
		revisions = append(revisions, update(t, s, i))
	}
	starts := make(chan struct{})
	group, ctx := errgroup.WithContext(t.Context())
	for i := range resumers {
		from := i * pastWork / resumers
		group.Go(func() error {
			<-starts
			return watchAll(ctx, s, revisions[from], pastWork-1-from+newWork)
		})
	}
	group.Go(func() error {
		close(starts)
		for i := range newWork {
			if _, err := s.Update(ctx, storetest.Rule(t, "default", "a", pastWork+i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// watchAll expects n changes of one object after a revision, each from the state of the
// one before.
func watchAll(ctx context.Context, s store.Reader, after int64, n int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.Watch(ctx, store.Scope{}, after)
	if err != nil {
		return err
	}
	last := after
	for n > 0 {
		if err := w.RequestProgress(ctx); err != nil {
			return err
		}
		b, ok := <-w.Batches()
		if !ok {
			return w.Err()
		}
		for _, ev := range b.Events {
			if ev.Previous.Revision() != last {
				return fmt.Errorf("watch after %d: revision %d came after %d, not after %d", after, ev.Object.Revision(), last, ev.Previous.Revision())
			}
			last = ev.Object.Revision()
			n--
		}
		if b.Revision < last {
			return fmt.Errorf("watch after %d: a batch of revision %d holds %d", after, b.Revision, last)
		}
	}
	return nil
}

func create(t *testing.T, s store.Interface, n int) int64 {
	t.Helper()
	return revisionOf(t)(s.Create(t.Context(), storetest.Rule(t, "default", "a", n)))
}

func update(t *testing.T, s store.Interface, n int) int64 {
	t.Helper()
	return revisionOf(t)(s.Update(t.Context(), storetest.Rule(t, "default", "a", n)))
}

func revisionOf(t *testing.T) func(*schema.Object, error) int64 {
	return func(obj *schema.Object, err error) int64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return obj.Revision()
	}
}

// TestClock checks that the revision of the store is that of its own last change,
// whatever else is written in etcd, and however the change was written.
func TestClock(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, "/mine", quiet)
	made := create(t, s, 0)
	put(t, client, "/elsewhere", "x")
	put(t, client, "/mine/objects-of-others", "x")
	if got, err := s.Revision(t.Context()); err != nil || got != made {
		t.Errorf("revision %d, %v, want %d", got, err, made)
	}
	if list, err := s.List(t.Context(), store.Scope{}, store.ListOptions{}); err != nil || list.Revision != made {
		t.Errorf("list at %d, %v, want %d", list.Revision, err, made)
	}
	if err := watchAll(t.Context(), s, made, 0); err != nil {
		t.Error(err)
	}
	w, err := s.Watch(t.Context(), store.Scope{}, made)
	if err != nil {
		t.Fatal(err)
	}
	gone := removeAt(t, client, "/mine/objects/config.istio.io/routerules/default/a")
	if b := <-w.Batches(); len(b.Events) != 1 || b.Events[0].Type != store.Deleted || b.Revision != gone {
		t.Errorf("told %+v", b)
	}
	// The watch has seen it and moves the clock past it.
	for newest := int64(0); newest < gone; {
		if newest, err = s.Revision(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func removeAt(t *testing.T, client *clientv3.Client, key string) int64 {
	t.Helper()
	resp, err := client.Delete(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Revision
}

// TestStoreWithoutAHead checks that objects written before there was a clock are read,
// watched and counted.
func TestStoreWithoutAHead(t *testing.T) {
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, "/old", quiet)
	first := create(t, s, 0)
	second := update(t, s, 1)
	removeAt(t, client, "/old/objects")
	for name, revision := range map[string]func() (int64, error){
		"revision": func() (int64, error) { return s.Revision(t.Context()) },
		"list": func() (int64, error) {
			l, err := s.List(t.Context(), store.Scope{}, store.ListOptions{})
			if err != nil {
				return 0, err
			}
			return l.Revision, nil
		},
	} {
		if got, err := revision(); err != nil || got < second {
			t.Errorf("%s %d, %v, want at least %d", name, got, err, second)
		}
	}
	if err := watchAll(t.Context(), s, first, 1); err != nil {
		t.Error(err)
	}
	if n, _, err := s.Count(t.Context()); err != nil || n != 1 {
		t.Errorf("count %d, %v", n, err)
	}
}

// TestRewind checks how far back etcd reaches. It must not log a warning if etcd does
// not reach as far as requested.
func TestRewind(t *testing.T) {
	var lines bytes.Buffer
	client, err := etcd.Dial(t.Context(), etcd.DialOptions{
		Endpoints: []string{etcdtest.Start(t).Endpoint()}, Log: slog.New(slog.NewTextHandler(&lines, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s := etcd.New(client, "/rewind", quiet)
	newest := create(t, s, 0)
	for i := range 40 {
		newest = update(t, s, i+1)
	}
	floor := newest - 13
	if _, err := client.Compact(t.Context(), floor); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[int64]int64{
		-5: floor, 0: floor, 1: floor, floor - 1: floor, floor: floor, floor + 1: floor + 1,
		newest - 1: newest - 1, newest: newest, newest + 9: newest,
	} {
		if got, err := s.Rewind(t.Context(), to); err != nil || got != want {
			t.Errorf("to %d: %d, %v, want %d", to, got, err, want)
		}
	}
	if _, err := s.List(t.Context(), store.Scope{}, store.ListOptions{Exact: floor}); err != nil {
		t.Errorf("list at the floor: %v", err)
	}
	if err := watchAll(t.Context(), s, floor, 13); err != nil {
		t.Errorf("watch from the floor: %v", err)
	}
	if _, err := s.List(t.Context(), store.Scope{}, store.ListOptions{Exact: floor - 1}); !errors.Is(err, store.ErrExpired) {
		t.Errorf("list before the floor: %v", err)
	}
	if lines.Len() > 0 {
		t.Errorf("log: %s", &lines)
	}
}
