package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/admission"
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

// plenty is enough time of processors for large objects.
func plenty(o *server.Options) {
	o.Long, o.LongReads = admission.NewLong(100), admission.NewLongReads(100)
}

// storeLarge stores objects of 200 KiB.
func (w *world) storeLarge(n int) {
	w.Helper()
	for i := range n {
		obj, problems := schema.Decode([]byte(largeRule(fmt.Sprintf("large-%d", i))), schema.Options{Namespace: "default"})
		if obj == nil {
			w.Fatal(problems)
		}
		if _, err := w.store.Create(w.Context(), obj); err != nil {
			w.Fatal(err)
		}
	}
}

// part returns an apply of a field of a rule.
func part(name string) string {
	return fmt.Sprintf(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":%q},"spec":{"precedence":7}}`, name)
}

// TestSmallWritesOfLargeObjectsWaitInLine checks that a small body which changes a large
// stored object takes the memory of that object, in every kind of write, and that
// writes of small objects do not wait.
func TestSmallWritesOfLargeObjectsWaitInLine(t *testing.T) {
	outside.Slow(t)
	one := func(op string) func(string) string {
		return func(name string) string { return transaction(strings.ReplaceAll(op, "NAME", name)) }
	}
	const apply = "Content-Type: application/apply-patch+yaml"
	onObject := func(name string) string { return rulesPath + "/" + name }
	inTransaction := func(string) string { return transactions }
	for way, send := range map[string]struct {
		method      string
		path, body  func(name string) string
		contentType string
	}{
		"PUT":                 {"PUT", onObject, func(name string) string { return rule(name, 3) }, asYAML},
		"PATCH":               {"PATCH", onObject, func(string) string { return `{"spec":{"precedence":7}}` }, "Content-Type: application/merge-patch+json"},
		"apply":               {"PATCH", func(name string) string { return onObject(name) + "?fieldManager=me&force=true" }, part, apply},
		"transaction, patch":  {"POST", inTransaction, one(named("patch", "NAME", `,"patch":{"spec":{"precedence":7}}`)), asJSON},
		"transaction, apply":  {"POST", inTransaction, one(`{"verb":"apply","fieldManager":"me","force":true,"object":` + part("NAME") + `}`), asJSON},
		"transaction, update": {"POST", inTransaction, one(ruleOp("update", "NAME", 7)), asJSON},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			begun, end := make(chan string, 100), make(chan struct{})
			w := start(t, plenty, func(o *server.Options) {
				o.Store = holding{o.Store, begun, end}
				o.RequestTimeout = 2 * time.Second
			})
			const together, more = 5, 3 // 128 MiB are for 1 MiB of text
			w.storeLarge(together + more)
			answers := make(chan answer, together+more)
			for i := range together + more {
				name := fmt.Sprintf("large-%d", i)
				go func() { answers <- w.do(send.method, send.path(name), send.body(name), send.contentType) }()
			}
			for range together {
				<-begun
			}
			w.create("small")
			w.want(http.StatusCreated, "POST", transactions, transaction(named("patch", "small", `,"patch":{"spec":{"precedence":7}}`)), asJSON)
			defer close(end)
			held := together
			for range more {
				select {
				case got := <-answers:
					if got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
						t.Errorf("got %d, want 429: %s", got.StatusCode, got.text)
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
					t.Errorf("got %d: %s", got.StatusCode, got.text)
				}
			}
		})
	}
}

// TestStoredObjectsOfATransactionAreBounded checks that a short transaction cannot make
// the server hold any number of large objects, not even as a dry run.
func TestStoredObjectsOfATransactionAreBounded(t *testing.T) {
	w := start(t, plenty)
	const many = 90 // more than 16 MiB
	w.storeLarge(many)
	for _, op := range []string{
		named("patch", "NAME", `,"patch":{"spec":{"precedence":7}}`),
		`{"verb":"apply","fieldManager":"me","force":true,"object":` + part("NAME") + `}`,
		ruleOp("update", "NAME", 7), ruleOp("apply", "NAME", 7), named("delete", "NAME", ""),
	} {
		ops := make([]string, many)
		for i := range ops {
			ops[i] = strings.ReplaceAll(op, "NAME", fmt.Sprintf("large-%d", i))
		}
		for _, dry := range []string{"?dryRun=All", ""} {
			got := w.want(http.StatusRequestEntityTooLarge, "POST", transactions+dry, transaction(ops...), asJSON)
			if !strings.Contains(got.text, "several transactions") {
				t.Errorf("%s", got.text)
			}
		}
		w.want(http.StatusCreated, "POST", transactions+"?dryRun=All", transaction(ops[:10]...), asJSON)
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
	w := start(t, func(o *server.Options) {
		o.RequestTimeout = 300 * time.Millisecond
		o.Store = slowReads{o.Store, 200 * time.Millisecond}
	})
	ops := make([]string, 20)
	for i := range ops {
		w.create(fmt.Sprintf("a%d", i))
		ops[i] = named("patch", fmt.Sprintf("a%d", i), `,"patch":{"spec":{"precedence":7}}`)
	}
	begin := time.Now()
	got := w.want(http.StatusGatewayTimeout, "POST", transactions+"?dryRun=All", transaction(ops...), asJSON)
	if took := time.Since(begin); took > 2*time.Second || !strings.Contains(got.text, "the request took too long") {
		t.Errorf("after %v: %s", took, got.text)
	}
}
