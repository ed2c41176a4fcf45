package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
)

// secret stands for the details behind a failure: addresses, user names, stacks.
const secret = "10.9.8.7:2379 as root"

// trouble is a store, and the source of discovery, in which every call fails in the
// same way.
type trouble struct{ fail func() error }

func (s trouble) Get(context.Context, schema.Key, store.ReadOptions) (*schema.Object, error) {
	return nil, s.fail()
}
func (s trouble) List(context.Context, store.Scope, store.ListOptions) (*store.List, error) {
	return nil, s.fail()
}
func (s trouble) History(context.Context, schema.Key) ([]store.Version, error) { return nil, s.fail() }
func (s trouble) Changes(context.Context, store.Scope, int64) ([]store.Difference, error) {
	return nil, s.fail()
}
func (s trouble) ChangesPage(context.Context, store.Scope, store.ChangesOptions) ([]store.Difference, bool, error) {
	return nil, false, s.fail()
}
func (s trouble) Watch(context.Context, store.Scope, int64) (store.Watcher, error) {
	return nil, s.fail()
}
func (s trouble) Revision(context.Context) (int64, error) { return 0, s.fail() }
func (s trouble) Create(context.Context, *schema.Object) (*schema.Object, error) {
	return nil, s.fail()
}
func (s trouble) Update(context.Context, *schema.Object) (*schema.Object, error) {
	return nil, s.fail()
}
func (s trouble) UpdateFunc(context.Context, schema.Key, store.Change) (*schema.Object, error) {
	return nil, s.fail()
}
func (s trouble) Delete(context.Context, schema.Key, store.Preconditions) (*schema.Object, error) {
	return nil, s.fail()
}
func (s trouble) Txn(context.Context, []store.Op) ([]*schema.Object, error) { return nil, s.fail() }

func (s trouble) Snapshot() ([]*schema.Object, int64, bool) { return nil, 0, false }
func (trouble) Since(int64) ([]schema.Change, int64, bool)  { return nil, 0, false }
func (s trouble) Changed() <-chan struct{}                  { return nil }
func (s trouble) Err() error                                { return s.fail() }

// TestCausesAreLoggedNotSent checks for all failures and paths that only the log
// has the cause.
func TestCausesAreLoggedNotSent(t *testing.T) {
	const (
		object = servertest.RulesPath + "/a"

		registryPath = "/apis/registry.istio.io/v1/"

		node = "sidecar~127.0.0.1~a.default~default.svc.cluster.local"
		poll = `{"node":{"id":"` + node + `"}}`
	)
	requests := []struct{ method, path, body, media string }{
		{"GET", object, "", ""}, {"GET", servertest.RulesPath, "", ""}, {"GET", servertest.AllRules + "?resourceVersionMatch=Exact&resourceVersion=1", "", ""},
		{"GET", servertest.RulesPath + "?watch=true", "", ""}, {"GET", servertest.RulesPath + "?watch=true&resourceVersion=1", "", ""},
		{"POST", servertest.RulesPath, servertest.Rule("a", 100), servertest.AsYAML}, {"POST", servertest.RulesPath + "?dryRun=All", servertest.Rule("a", 100), servertest.AsYAML},
		{"PUT", object, servertest.Rule("a", 100), servertest.AsYAML}, {"PUT", object + "?dryRun=All", servertest.Rule("a", 100), servertest.AsYAML},
		{"PATCH", object, `{}`, servertest.MergePatch}, {"PATCH", object + "?dryRun=All", `{}`, servertest.MergePatch},
		{"DELETE", object, "", ""}, {"DELETE", object + "?dryRun=All", "", ""},
		{"GET", object + "/history", "", ""}, {"GET", object + "/history/1", "", ""}, {"GET", registryPath + "changes?since=1", "", ""},
		{"POST", registryPath + "transactions", `{"spec":{"operations":[{"verb":"delete","target":{"kind":"RouteRule","namespace":"default","name":"a"}}]}}`, ""},
		{"POST", registryPath + "rollbacks", `{"spec":{"revision":1,"namespace":"default"}}`, ""},
		{"GET", "/readyz", "", ""}, {"GET", "/debug/problems", "", ""}, {"GET", "/metrics", "", ""},
		{"GET", "/v1/registration", "", ""}, {"GET", "/v1/registration/a", "", ""},
		{"GET", "/v1/clusters/a/" + node, "", ""}, {"GET", "/v1/listeners/a/" + node, "", ""},
		{"GET", "/v1/routes/9080/a/" + node, "", ""}, {"GET", "/v1/az/a/" + node, "", ""},
		{"POST", "/v3/discovery:clusters", poll, servertest.AsJSON}, {"POST", "/v3/discovery:listeners", poll, servertest.AsJSON},
		{"POST", "/v3/discovery:routes", poll, servertest.AsJSON}, {"POST", "/v3/discovery:endpoints", poll, servertest.AsJSON},
	}
	kinds := map[string]func() error{"raw": func() error { return errors.New(secret) }}
	for _, kind := range []error{
		store.ErrNotFound, store.ErrExists, store.ErrConflict, store.ErrInvalid, store.ErrExpired, store.ErrFuture, store.ErrSlow,
		store.ErrUnavailable, store.ErrTooLarge, store.ErrOutcomeUnknown, context.DeadlineExceeded, errors.New("no kind of ours"),
	} {
		kinds[kind.Error()] = func() error {
			// A failure may have another failure as its cause, with an answer of its own.
			inner := &store.Error{Kind: store.ErrUnavailable, Cause: errors.New(secret)}
			return fmt.Errorf("wrapped: %w", &store.Error{Kind: kind, Cause: fmt.Errorf("%s: %w", secret, inner)})
		}
	}
	for name, fail := range kinds {
		t.Run(name, func(t *testing.T) {
			var log lockedBuffer
			in := trouble{fail}
			w := servertest.StartBehind(t, anyAnswer, func(o *server.Options) {
				o.Store, o.Reads = store.Strict(in), in
				o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				if name != "raw" { // Checks and sources answer with texts for people.
					o.Ready = []server.Check{{Name: "store", Run: func(context.Context) error { return fail() }}}
					o.Discovery = discovery.New(discovery.Options{Source: in})
				}
			})
			for _, r := range requests {
				got := w.Do(r.method, r.path, r.body, cmp.Or(r.media, servertest.AsJSON))
				if strings.Contains(got.Text, secret) || strings.Contains(fmt.Sprint(got.Header), secret) {
					t.Errorf("%s %s: %d %s", r.method, r.path, got.StatusCode, got.Text)
				}
			}
			if internal := w.Do("GET", object, ""); internal.StatusCode >= http.StatusInternalServerError && !strings.Contains(log.String(), secret) {
				t.Errorf("the log does not know the cause: %s", log.String())
			}
		})
	}
}

// lockedBuffer is a log for concurrent requests.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
