package watch_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// lateWish is a store that makes a change after a watch has looked for the first
// time and found nothing, and only then receives its request for progress: one
// token of the watch is for both.
type lateWish struct {
	*memory.Store
	change func()
}

func (s lateWish) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	w, err := s.Store.Watch(ctx, scope, after)
	if err != nil {
		return nil, err
	}
	return &lateWatch{Puller: w.(store.Puller), ctx: ctx, change: s.change}, nil
}

type lateWatch struct {
	store.Puller
	ctx    context.Context
	change func()
	once   sync.Once
}

func (w *lateWatch) RequestProgress(context.Context) error { return nil }

func (w *lateWatch) Pull() (b store.Batch, some bool, err error) {
	b, some, err = w.Puller.Pull()
	w.once.Do(func() {
		w.change()
		_ = w.Puller.RequestProgress(w.ctx)
	})
	return b, some, err
}

// TestWatchThatGoesOnIsWoken checks that a watch receives more than its first
// event.
func TestWatchThatGoesOnIsWoken(t *testing.T) {
	objects := memory.New()
	var w *servertest.World
	w = servertest.Start(t, func(o *server.Options) {
		o.Store = store.Strict(objects)
		o.Reads = lateWish{objects, func() { w.Create("b") }}
	})
	a := w.Create("a")
	watch := w.Watch("&resourceVersion=" + a.Metadata.ResourceVersion)
	watch.Want("ADDED b")
	w.Create("c")
	watch.Want("ADDED c")
}

// onlyPushed is a store whose watches cannot be pulled, like those of etcd and of
// other servers.
type onlyPushed struct{ *memory.Store }

func (s onlyPushed) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	w, err := s.Store.Watch(ctx, scope, after)
	return struct{ store.Watcher }{w}, err
}

// TestWatchThatIsPushed checks that a pushed watch receives everything, too.
func TestWatchThatIsPushed(t *testing.T) {
	objects := memory.New()
	w := servertest.Start(t, func(o *server.Options) { o.Store, o.Reads = store.Strict(objects), onlyPushed{objects} })
	a := w.Create("a")
	watch := w.Watch("&resourceVersion=" + a.Metadata.ResourceVersion)
	const changes = 300
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() {
		for i := range changes {
			w.Do("PUT", servertest.RulesPath+"/a", servertest.Rule("a", 1, fmt.Sprintf("annotations: {n: n%d}", i)), servertest.AsYAML)
		}
	})
	for i := range changes {
		f, ok := watch.Next()
		if want := fmt.Sprintf(`"n":"n%d"`, i); !ok || !strings.Contains(string(f.Object), want) {
			t.Fatalf("told %s, want %s", f.Object, want)
		}
	}
}

// TestListBesideADryRun checks that the answer to a dry run of a delete does not
// show up in lists.
func TestListBesideADryRun(t *testing.T) {
	w := servertest.Start(t)
	for i := range 150 {
		w.Create(fmt.Sprintf("r%d", i), "finalizers: [a.example.com/b]", "annotations: {note: "+strings.Repeat("x", 1<<10)+"}")
	}
	for range 3 {
		w.Want(http.StatusOK, "DELETE", servertest.RulesPath, `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`, servertest.AsJSON)
		if _, text := w.Raw(servertest.RulesPath); strings.Contains(text, "deletionTimestamp") {
			t.Fatal("the list has what the dry run had")
		}
	}
}
