package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// busy answers a number of requests with errors, then successfully.
type busy struct {
	left       int
	code       int
	body       string
	retryAfter string
	asked      int
}

func (b *busy) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	b.asked++
	if b.left--; b.left >= 0 {
		if b.retryAfter != "" {
			w.Header().Set("Retry-After", b.retryAfter)
		}
		w.WriteHeader(b.code)
		_, _ = w.Write([]byte(b.body))
		return
	}
	_, _ = w.Write([]byte(oneRule))
}

const (
	busyStatus  = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":2}}`
	awayStatus  = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503,"details":{"retryAfterSeconds":2}}`
	doubtStatus = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,"details":{"causes":[{"reason":"OutcomeUnknown"}]}}`
)

// TestRetries checks that only requests that were certainly not executed are retried,
// as often as allowed, and never before the time that the server asks for.
func TestRetries(t *testing.T) {
	key := schema.Key{Kind: "RouteRule", Namespace: "books", Name: "x"}
	rule := storetest.Rule(t, "books", "x", 1)
	get := func(c *client.Client) error { _, err := c.Get(t.Context(), key, store.ReadOptions{}); return err }
	create := func(c *client.Client) error { _, err := c.Create(t.Context(), rule); return err }
	for _, tc := range []struct {
		name    string
		server  busy
		call    func(*client.Client) error
		retries int
		asked   int
		fails   error
	}{
		{"get, too many requests", busy{left: 3, code: 429, body: busyStatus, retryAfter: "2"}, get, 3, 4, nil},
		{"create, too many requests", busy{left: 3, code: 429, body: busyStatus, retryAfter: "2"}, create, 3, 4, nil},
		{"create, no store", busy{left: 1, code: 503, body: awayStatus, retryAfter: "2"}, create, 3, 2, nil},
		{"not often enough", busy{left: 4, code: 429, body: busyStatus, retryAfter: "2"}, get, 3, 4, store.ErrUnavailable},
		{"nobody asked for it", busy{left: 1, code: 503, body: awayStatus, retryAfter: "2"}, get, 0, 1, store.ErrUnavailable},
		{"a long time", busy{left: 1, code: 503, body: awayStatus, retryAfter: "3600"}, get, 3, 2, nil},
		{"no such time", busy{left: 1, code: 503, body: awayStatus, retryAfter: "9000000000"}, get, 3, 2, nil},
		{"no time", busy{left: 1, code: 503, body: awayStatus}, get, 3, 1, store.ErrUnavailable},
		{"may be done", busy{left: 1, code: 504, body: doubtStatus, retryAfter: "2"}, create, 3, 1, store.ErrOutcomeUnknown},
		{"get, a proxy's word", busy{left: 1, code: 503, body: "<html>", retryAfter: "2"}, get, 3, 2, nil},
		{"create, a proxy's word", busy{left: 1, code: 503, body: "<html>", retryAfter: "2"}, create, 3, 1, store.ErrOutcomeUnknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			srv := httptest.NewServer(&tc.server)
			defer srv.Close()
			c := connect(t, srv.URL, client.Options{Retries: tc.retries})
			var waited []time.Duration
			c.Paused(func(_ context.Context, d time.Duration) bool { waited = append(waited, d); return true })
			if err := tc.call(c); !errors.Is(err, tc.fails) || tc.server.asked != tc.asked || len(waited) != tc.asked-1 {
				t.Errorf("%v after %d requests, waited %v", err, tc.server.asked, waited)
			}
			for try, d := range waited {
				least := min(2*time.Second, client.MostPause)
				if d < least || d > client.MostPause || d > 2*time.Second+2*time.Second<<try && tc.server.retryAfter == "2" {
					t.Errorf("try %d after %s", try, d)
				}
			}
		})
	}
}

// TestRetriesEndWithTheContext checks that the last error is returned, not that of the
// wait.
func TestRetriesEndWithTheContext(t *testing.T) {
	srv := httptest.NewServer(&busy{left: 10, code: 429, body: busyStatus, retryAfter: "3600"})
	defer srv.Close()
	c := connect(t, srv.URL, client.Options{Retries: 10})
	ctx, cancel := context.WithCancel(t.Context())
	c.Paused(func(ctx context.Context, _ time.Duration) bool {
		cancel()
		<-ctx.Done()
		return false
	})
	if _, err := c.Revision(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Error(err)
	}
}

// TestConflictsAreApart checks that a writer that loses a race waits before it retries,
// and loses no write.
func TestConflictsAreApart(t *testing.T) {
	key := storetest.Rule(t, "default", "a", 1).Key()
	for name, do := range map[string]func(*client.Client, store.Change) error{
		"an update": func(c *client.Client, change store.Change) error {
			_, err := c.UpdateFunc(t.Context(), key, change)
			return err
		},
		"a transaction": func(c *client.Client, change store.Change) error {
			_, err := c.Txn(t.Context(), []store.Op{{Verb: store.OpUpdate, Key: key, Change: change}})
			return err
		},
	} {
		mem := memory.New()
		c := behind(t, mem)
		if _, err := mem.Create(t.Context(), storetest.Rule(t, "default", "a", 1)); err != nil {
			t.Fatal(err)
		}
		var waited []time.Duration
		c.Paused(func(_ context.Context, d time.Duration) bool { waited = append(waited, d); return true })
		tries := 0
		err := do(c, func(o *schema.Object) (*schema.Object, error) {
			if tries++; tries < 5 {
				if _, err := mem.Update(t.Context(), storetest.Rule(t, "default", "a", 10+tries)); err != nil {
					t.Error(err)
				}
			}
			meta := o.Meta
			meta.Labels = map[string]string{"mine": "yes"}
			return o.WithMeta(meta)
		})
		if err != nil || tries != 5 || len(waited) != 4 {
			t.Errorf("%s: %v after %d tries, waited %v", name, err, tries, waited)
		}
		for _, d := range waited {
			if d < 0 || d > time.Second {
				t.Errorf("%s waited %s", name, d)
			}
		}
	}
}

// TestApplyOfWhatComesAndGoes checks that an apply by function creates an object that
// was just deleted, and changes one that was just created.
func TestApplyOfWhatComesAndGoes(t *testing.T) {
	mem := memory.New()
	c := behind(t, mem)
	rule := storetest.Rule(t, "default", "a", 1)
	if _, err := mem.Create(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	var seen []bool
	got, err := store.Single(c.Txn(t.Context(), []store.Op{{Verb: store.OpApply, Key: rule.Key(), Change: func(stored *schema.Object) (*schema.Object, error) {
		var err error
		switch seen = append(seen, stored != nil); len(seen) {
		case 1:
			_, err = mem.Delete(t.Context(), rule.Key(), store.Preconditions{})
		case 2:
			_, err = mem.Create(t.Context(), rule)
		}
		return storetest.Rule(t, "default", "a", 2), err
	}}}))
	if err != nil || !slices.Equal(seen, []bool{true, false, true}) || got.Meta.Generation != 2 {
		t.Errorf("applied to %v: %v, %v", seen, got, err)
	}
}

func TestPatch(t *testing.T) {
	c := behind(t, memory.New())
	made, err := c.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	for kind, patch := range map[string]string{
		"application/merge-patch+json": `{"spec":{"precedence":7}}`,
		"application/json-patch+json":  `[{"op":"replace","path":"/spec/precedence","value":7}]`,
	} {
		got, err := c.Patch(t.Context(), made.Key(), types.PatchType(kind), []byte(patch))
		if err != nil || !strings.Contains(string(got.SpecJSON()), `"precedence":7`) {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
	}
	missing := made.Key()
	missing.Name = "b"
	if _, err := c.Patch(t.Context(), missing, types.MergePatchType, []byte("{}")); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}
