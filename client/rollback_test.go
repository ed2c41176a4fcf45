package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// takesAtOnce is the maximum number of operations in a transaction in these tests.
const takesAtOnce = 1000

// shelf is a namespace with many objects and a server through which clients roll it
// back.
type shelf struct {
	*testing.T
	store  *memory.Store
	scope  store.Scope
	then   int64             // the revision to go back to
	before map[string]string // the specs at that revision, by key
}

// newShelf returns a namespace with 2,500 objects to roll back: each of n services is
// changed, its rules are deleted and others created, and a delegate is replaced by
// another one.
func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{T: t, store: memory.New(), scope: store.Scope{Namespace: "books"}}
	const n = 500
	for i := range n {
		s.write(store.OpCreate, service(i, 80), route(i, "1s"), delegate(i, "1s"))
	}
	s.then = s.revision()
	s.before = s.state()
	for i := range n {
		s.write(store.OpUpdate, service(i, 81), delegate(i, "2s"))
		s.delete(s.parse(route(i, "")).Key())
		s.write(store.OpCreate, policy(i), newRoute(i))
	}
	return s
}

func service(i, port int) string {
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"svc-%d","namespace":"books"},
		"spec":{"hosts":["svc-%d.example"],"resolution":"STATIC","ports":[{"number":%d,"name":"http","protocol":"HTTP"}]}}`, i, i, port)
}

func route(i int, timeout string) string {
	return virtualService("route", i, timeout, `"hosts":["svc-%d.example"],`)
}

func newRoute(i int) string { return virtualService("new", i, "3s", `"hosts":["new-%d.example"],`) }

func delegate(i int, timeout string) string { return virtualService("a-delegate", i, timeout, "") }

func virtualService(name string, i int, timeout, hosts string) string {
	if hosts != "" {
		hosts = fmt.Sprintf(hosts, i)
	}
	if timeout == "" {
		timeout = "1s"
	}
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"%s-%d","namespace":"books"},
		"spec":{%s"http":[{"timeout":%q,"route":[{"destination":{"host":"svc-%d.example"}}]}]}}`, name, i, hosts, timeout, i)
}

func policy(i int) string {
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"DestinationRule","metadata":{"name":"policy-%d","namespace":"books"},
		"spec":{"host":"svc-%d.example"}}`, i, i)
}

func (s *shelf) parse(text string) *schema.Object {
	s.Helper()
	obj, problems := schema.Decode([]byte(text), schema.Options{})
	if obj == nil {
		s.Fatal(problems)
	}
	return obj
}

func (s *shelf) write(verb store.Verb, texts ...string) {
	s.Helper()
	var ops []store.Op
	for _, text := range texts {
		ops = append(ops, store.Op{Verb: verb, Object: s.parse(text)})
	}
	if _, err := s.store.Txn(s.Context(), ops); err != nil {
		s.Fatal(err)
	}
}

func (s *shelf) delete(key schema.Key) {
	s.Helper()
	if _, err := s.store.Delete(s.Context(), key, store.Preconditions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *shelf) revision() int64 {
	s.Helper()
	revision, err := s.store.Revision(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return revision
}

// state returns the specs of all objects.
func (s *shelf) state() map[string]string {
	s.Helper()
	list, err := s.store.List(s.Context(), s.scope, store.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	out := map[string]string{}
	for _, obj := range list.Items {
		out[obj.Key().String()] = string(obj.SpecJSON())
	}
	return out
}

func (s *shelf) wantBefore(except ...string) {
	s.Helper()
	want, got := maps.Clone(s.before), s.state()
	for _, key := range except {
		delete(want, key)
		delete(got, key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("(-then +rolled back):\n%.2000s", diff)
	}
}

// serve starts a server over the shelf, or over a store in front of it.
func (s *shelf) serve(behind store.Interface, opts client.Options) *client.Client {
	s.Helper()
	srv := httptest.NewServer(server.New(server.Options{
		Store: store.Strict(behind), Reads: s.store, MaxTransaction: takesAtOnce,
	}).Handler())
	s.Cleanup(srv.Close)
	return connect(s.T, srv.URL, opts)
}

// steps rolls back in steps and calls between after each one.
func (s *shelf) steps(c *client.Client, between func(n int)) (all []*client.RollbackStep) {
	s.Helper()
	for step, err := range c.RollbackInSteps(s.Context(), s.scope, s.then) {
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, step)
		if between != nil {
			between(len(all))
		}
	}
	return all
}

func resultsOf(steps []*client.RollbackStep) (out []client.Result) {
	for _, step := range steps {
		out = append(out, step.Results...)
	}
	return out
}

func undoneIn(steps []*client.RollbackStep) (out []string) {
	for _, step := range steps {
		for _, u := range step.Undone {
			out = append(out, u.Key.String())
		}
	}
	return out
}

// TestRollbackInSteps checks that each step is a transaction that the store accepts,
// and that objects are written before those that refer to them and deleted after them.
func TestRollbackInSteps(t *testing.T) {
	s := newShelf(t)
	steps := s.steps(s.serve(s.store, client.Options{}), nil)
	s.wantBefore()
	results := resultsOf(steps)
	if len(results) != 2500 || len(undoneIn(steps)) != 0 {
		t.Fatalf("%d results, undone: %v", len(results), undoneIn(steps))
	}
	left := len(results)
	for i, step := range steps {
		left -= len(step.Results)
		if len(step.Results) > takesAtOnce || step.Remaining != left || step.Last != (i == len(steps)-1) {
			t.Errorf("step %d has %d results, %d remain, last %t", i, len(step.Results), step.Remaining, step.Last)
		}
		for _, r := range step.Results {
			if r.Object.Revision() != step.Results[0].Object.Revision() {
				t.Fatalf("step %d is of several revisions", i)
			}
		}
	}
	var order []string
	for _, r := range results {
		name, _, _ := strings.Cut(r.Object.Meta.Name, "-")
		order = append(order, string(r.Verb)+" "+name)
	}
	want := []string{"update svc", "update a", "create route", "delete new", "delete policy"}
	if got := slices.Compact(order); !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if again := resultsOf(s.steps(s.serve(s.store, client.Options{}), nil)); len(again) != 0 {
		t.Errorf("a second rollback changes %d objects", len(again))
	}
}

// TestRollbackKeepsWhatOthersChange checks that objects that another client changes,
// creates or deletes between two steps stay, and are reported by name.
func TestRollbackKeepsWhatOthersChange(t *testing.T) {
	s := newShelf(t)
	changed := s.parse(service(400, 99)).Key()
	made := s.parse(route(400, "")).Key()
	gone := s.parse(policy(7)).Key()
	fresh := s.parse(strings.ReplaceAll(policy(7), "policy-7", "fresh")).Key()
	steps := s.steps(s.serve(s.store, client.Options{}), func(n int) {
		if n == 1 {
			s.write(store.OpUpdate, service(400, 99))
			s.write(store.OpCreate, route(400, "9s"), strings.ReplaceAll(policy(7), "policy-7", "fresh"))
			s.delete(gone)
		}
	})
	undone := undoneIn(steps)
	slices.Sort(undone)
	if want := []string{fresh.String(), changed.String(), made.String()}; !slices.Equal(undone, slices.Sorted(slices.Values(want))) {
		t.Fatalf("undone: %v, want %v", undone, want)
	}
	s.wantBefore(undone...)
	for key, sign := range map[schema.Key]string{changed: "99", made: "9s", fresh: "svc-7"} {
		if text := s.state()[key.String()]; !strings.Contains(text, sign) {
			t.Errorf("%s is %s", key, text)
		}
	}
	for _, step := range steps {
		for _, u := range step.Undone {
			if u.Reason != "Conflict" || !strings.Contains(u.Message, "after the rollback began") {
				t.Errorf("undone: %+v", u)
			}
		}
	}
	s.steps(s.serve(s.store, client.Options{}), nil)
	s.wantBefore() // A second rollback overwrites it.
}

// overtaking changes an object before the transactions that write it.
type overtaking struct {
	store.Interface
	write func()
	of    schema.Key
}

func (o *overtaking) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	if o.write != nil && slices.ContainsFunc(ops, func(op store.Op) bool { return op.Target() == o.of }) {
		o.write()
		o.write = nil
	}
	return o.Interface.Txn(ctx, ops)
}

// TestRollbackIsOvertaken checks that another client may change an object in the middle
// of a step, after it was compared.
func TestRollbackIsOvertaken(t *testing.T) {
	outside.Slow(t)
	for name, i := range map[string]int{"first": 0, "middle": 300, "last": 499} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			key := s.parse(service(i, 99)).Key()
			between := &overtaking{s.store, func() { s.write(store.OpUpdate, service(i, 99)) }, key}
			steps := s.steps(s.serve(between, client.Options{}), nil)
			if undone := undoneIn(steps); len(undone) != 1 || undone[0] != key.String() {
				t.Fatalf("undone: %v", undone)
			}
			s.wantBefore(key.String())
			if n := len(resultsOf(steps)); n != 2499 {
				t.Errorf("%d results", n)
			}
		})
	}
}

// frugal accepts fewer operations than the server was configured with.
type frugal struct {
	store.Interface
	most int
}

func (f frugal) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	if err := store.CheckLimit(ops, f.most); err != nil {
		return nil, err
	}
	return f.Interface.Txn(ctx, ops)
}

// TestRollbackMakesSmallerSteps checks a transaction that is too large for the store
// for another reason than its number of operations.
func TestRollbackMakesSmallerSteps(t *testing.T) {
	outside.Slow(t)
	s := newShelf(t)
	for _, step := range s.steps(s.serve(frugal{s.store, 70}, client.Options{}), nil) {
		if len(step.Results) > 70 {
			t.Fatalf("a step of %d", len(step.Results))
		}
	}
	s.wantBefore()
}

// TestRollbackGoesOn checks that, if a client ends after a step or another server takes
// over, the next rollback does the rest, and that nothing is written twice.
func TestRollbackGoesOn(t *testing.T) {
	s := newShelf(t)
	first := s.serve(s.store, client.Options{})
	done := map[string]int64{}
	for step, err := range first.RollbackInSteps(t.Context(), s.scope, s.then) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range step.Results {
			done[r.Object.Key().String()] = r.Object.Revision()
		}
		if len(done) > 0 {
			break
		}
	}
	if len(done) == 0 || len(done) > takesAtOnce {
		t.Fatalf("%d objects are done", len(done))
	}
	rest := resultsOf(s.steps(s.serve(s.store, client.Options{}), nil))
	if len(rest)+len(done) != 2500 {
		t.Errorf("%d objects are done after %d", len(rest), len(done))
	}
	for _, r := range rest {
		if done[r.Object.Key().String()] > 0 {
			t.Errorf("%s is written twice", r.Object.Key())
		}
	}
	s.wantBefore()
}

// TestRollbackOutlivesItsServer checks that another server continues with the same
// steps.
func TestRollbackOutlivesItsServer(t *testing.T) {
	s := newShelf(t)
	var front *httptest.Server
	restart := func() {
		front.Config.Handler = server.New(server.Options{Store: store.Strict(s.store), Reads: s.store, MaxTransaction: takesAtOnce}).Handler()
	}
	front = httptest.NewUnstartedServer(nil)
	restart()
	front.Start()
	t.Cleanup(front.Close)
	c := connect(t, front.URL, client.Options{})
	steps := s.steps(c, func(int) { restart() })
	if n := len(resultsOf(steps)); n != 2500 || len(undoneIn(steps)) != 0 {
		t.Errorf("%d results, undone %v", n, undoneIn(steps))
	}
	s.wantBefore()
}

// TestRollbackStepIsAskedForAgain checks that a step that was done but not answered is
// no conflict when it is requested again.
func TestRollbackStepIsAskedForAgain(t *testing.T) {
	s := newShelf(t)
	real := server.New(server.Options{Store: store.Strict(s.store), Reads: s.store, MaxTransaction: takesAtOnce}).Handler()
	written := 0
	twice := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		lost := httptest.NewRecorder()
		r.Body = io.NopCloser(bytes.NewReader(body))
		real.ServeHTTP(lost, r)
		written += strings.Count(lost.Body.String(), `"verb"`)
		r.Body = io.NopCloser(bytes.NewReader(body))
		real.ServeHTTP(w, r)
	})
	srv := httptest.NewServer(twice)
	t.Cleanup(srv.Close)
	steps := s.steps(connect(t, srv.URL, client.Options{}), nil)
	if written == 0 || len(undoneIn(steps)) != 0 {
		t.Errorf("%d written without an answer, undone: %v", written, undoneIn(steps))
	}
	s.wantBefore()
}

// TestRollbackInStepsIsTriedDry checks that a dry run returns the same and changes
// nothing.
func TestRollbackInStepsIsTriedDry(t *testing.T) {
	s := newShelf(t)
	now, before := s.revision(), s.state()
	tell := func(steps []*client.RollbackStep) (out []string) {
		for _, r := range resultsOf(steps) {
			out = append(out, string(r.Verb)+" "+r.Object.Key().String())
		}
		slices.Sort(out)
		return out
	}
	dry := tell(s.steps(s.serve(s.store, client.Options{DryRun: true}), nil))
	if s.revision() != now || !maps.Equal(before, s.state()) {
		t.Fatal("a dry run changes something")
	}
	if diff := cmp.Diff(tell(s.steps(s.serve(s.store, client.Options{}), nil)), dry); diff != "" {
		t.Errorf("(-done +told):\n%.2000s", diff)
	}
}

// TestRollbackAtOnceIsRefused checks that changes beyond one transaction are refused.
// Changes that fit into one transaction are one, even in steps.
func TestRollbackAtOnceIsRefused(t *testing.T) {
	s := newShelf(t)
	c := s.serve(s.store, client.Options{})
	now := s.revision()
	_, err := c.Rollback(t.Context(), s.scope, s.then)
	if !errors.Is(err, store.ErrTooLarge) || !strings.Contains(err.Error(), "2500 objects") || !strings.Contains(err.Error(), "1000 objects") {
		t.Errorf("all at once: %v", err)
	}
	if s.revision() != now {
		t.Error("something was done")
	}
	s.scope.Kind = s.parse(policy(1)).Kind
	if steps := s.steps(c, nil); len(steps) != 1 || len(steps[0].Results) != 500 || s.revision() != now+1 {
		t.Errorf("500 objects in %d steps", len(steps))
	}
	now = s.revision()
	s.scope.Kind = s.parse(service(1, 1)).Kind
	between := &overtaking{s.store, func() { s.write(store.OpUpdate, service(3, 99)) }, s.parse(service(3, 1)).Key()}
	for _, err := range s.serve(between, client.Options{}).RollbackInSteps(t.Context(), s.scope, s.then) {
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("overtaken in the one transaction: %v", err)
		}
	}
	if s.revision() != now+1 {
		t.Error("something was done beside the change of another")
	}
}
