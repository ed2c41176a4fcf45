package actions_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
)

// holding is a store whose writes of objects named large-… wait for the end.
type holding struct {
	store.Interface
	begun chan string
	end   chan struct{}
}

func (s holding) hold(name string) {
	if strings.HasPrefix(name, "large") {
		s.begun <- name
		<-s.end
	}
}

func (s holding) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	s.hold(ops[0].Target().Name)
	return s.Interface.Txn(context.WithoutCancel(ctx), ops)
}

func (s holding) Update(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	s.hold(obj.Meta.Name)
	return s.Interface.Update(context.WithoutCancel(ctx), obj)
}

func (s holding) UpdateFunc(ctx context.Context, key schema.Key, change store.Change) (*schema.Object, error) {
	s.hold(key.Name)
	return s.Interface.UpdateFunc(context.WithoutCancel(ctx), key, change)
}

// storeLarge stores objects of 200 KiB.
func storeLarge(w *servertest.World, n int) {
	w.Helper()
	for i := range n {
		obj, problems := schema.Decode([]byte(servertest.LargeRule(fmt.Sprintf("large-%d", i))), schema.Options{Namespace: "default"})
		if obj == nil {
			w.Fatal(problems)
		}
		if _, err := w.Store.Create(w.Context(), obj); err != nil {
			w.Fatal(err)
		}
	}
}

// TestSmallWritesOfLargeObjectsWaitInLine checks that a small body which changes a large
// stored object takes the memory of that object, in every kind of write, and that
// writes of small objects do not wait.
func TestSmallWritesOfLargeObjectsWaitInLine(t *testing.T) {
	outside.Slow(t)
	one := func(op string) func(string) string {
		return func(name string) string { return servertest.Transaction(strings.ReplaceAll(op, "NAME", name)) }
	}
	const apply = "Content-Type: application/apply-patch+yaml"
	onObject := func(name string) string { return servertest.RulesPath + "/" + name }
	inTransaction := func(string) string { return servertest.Transactions }
	for way, send := range map[string]struct {
		method      string
		path, body  func(name string) string
		contentType string
	}{
		"PUT":                 {"PUT", onObject, func(name string) string { return servertest.Rule(name, 3) }, servertest.AsYAML},
		"PATCH":               {"PATCH", onObject, func(string) string { return `{"spec":{"precedence":7}}` }, "Content-Type: application/merge-patch+json"},
		"apply":               {"PATCH", func(name string) string { return onObject(name) + "?fieldManager=me&force=true" }, servertest.Part, apply},
		"transaction, patch":  {"POST", inTransaction, one(servertest.Named("patch", "NAME", `,"patch":{"spec":{"precedence":7}}`)), servertest.AsJSON},
		"transaction, apply":  {"POST", inTransaction, one(`{"verb":"apply","fieldManager":"me","force":true,"object":` + servertest.Part("NAME") + `}`), servertest.AsJSON},
		"transaction, update": {"POST", inTransaction, one(servertest.RuleOp("update", "NAME", 7)), servertest.AsJSON},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			begun, end := make(chan string, 100), make(chan struct{})
			w := servertest.Start(t, servertest.Plenty, func(o *server.Options) {
				o.Store = holding{o.Store, begun, end}
				o.RequestTimeout = 2 * time.Second
			})
			const together, more = 5, 3 // 128 MiB are for 1 MiB of text
			storeLarge(w, together+more)
			answers := make(chan servertest.Answer, together+more)
			for i := range together + more {
				name := fmt.Sprintf("large-%d", i)
				go func() { answers <- w.Do(send.method, send.path(name), send.body(name), send.contentType) }()
			}
			for range together {
				<-begun
			}
			w.Create("small")
			w.Want(http.StatusCreated, "POST", servertest.Transactions, servertest.Transaction(servertest.Named("patch", "small", `,"patch":{"spec":{"precedence":7}}`)), servertest.AsJSON)
			defer close(end)
			held := together
			for range more {
				select {
				case got := <-answers:
					if got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
						t.Errorf("got %d, want 429: %s", got.StatusCode, got.Text)
					}
				case name := <-begun:
					t.Errorf("%s began although there was no room", name)
					held++
				}
			}
			for range held {
				end <- struct{}{}
			}
			for range held {
				// Its time may be over by now.
				if got := <-answers; got.StatusCode/100 != 2 && got.StatusCode != http.StatusGatewayTimeout {
					t.Errorf("got %d: %s", got.StatusCode, got.Text)
				}
			}
		})
	}
}

// TestStoredObjectsOfATransactionAreBounded checks that a short transaction cannot make
// the server hold any number of large objects, not even as a dry run.
func TestStoredObjectsOfATransactionAreBounded(t *testing.T) {
	w := servertest.Start(t, servertest.Plenty)
	const many = 90 // more than 16 MiB
	storeLarge(w, many)
	for _, op := range []string{
		servertest.Named("patch", "NAME", `,"patch":{"spec":{"precedence":7}}`),
		`{"verb":"apply","fieldManager":"me","force":true,"object":` + servertest.Part("NAME") + `}`,
		servertest.RuleOp("update", "NAME", 7), servertest.RuleOp("apply", "NAME", 7), servertest.Named("delete", "NAME", ""),
	} {
		ops := make([]string, many)
		for i := range ops {
			ops[i] = strings.ReplaceAll(op, "NAME", fmt.Sprintf("large-%d", i))
		}
		for _, dry := range []string{"?dryRun=All", ""} {
			got := w.Want(http.StatusRequestEntityTooLarge, "POST", servertest.Transactions+dry, servertest.Transaction(ops...), servertest.AsJSON)
			if !strings.Contains(got.Text, "several transactions") {
				t.Errorf("%s", got.Text)
			}
		}
		w.Want(http.StatusCreated, "POST", servertest.Transactions+"?dryRun=All", servertest.Transaction(ops[:10]...), servertest.AsJSON)
	}
}

// slowReads is a store whose reads take their time.
type slowReads struct {
	store.Interface
	takes time.Duration
}

func (s slowReads) Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error) {
	time.Sleep(s.takes)
	return s.Interface.Get(context.WithoutCancel(ctx), key, opts)
}

// TestATransactionEndsWithItsTime checks that a transaction stops between two of its
// operations when its time is over, and says so.
func TestATransactionEndsWithItsTime(t *testing.T) {
	w := servertest.Start(t, func(o *server.Options) {
		o.RequestTimeout = 300 * time.Millisecond
		o.Store = slowReads{o.Store, 200 * time.Millisecond}
	})
	ops := make([]string, 20)
	for i := range ops {
		w.Create(fmt.Sprintf("a%d", i))
		ops[i] = servertest.Named("patch", fmt.Sprintf("a%d", i), `,"patch":{"spec":{"precedence":7}}`)
	}
	begin := time.Now()
	got := w.Want(http.StatusGatewayTimeout, "POST", servertest.Transactions+"?dryRun=All", servertest.Transaction(ops...), servertest.AsJSON)
	if took := time.Since(begin); took > 2*time.Second || !strings.Contains(got.Text, "the request took too long") {
		t.Errorf("after %v: %s", took, got.Text)
	}
}
