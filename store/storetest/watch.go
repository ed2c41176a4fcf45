package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

func (s *suite) watch(scope store.Scope, after int64) store.Watcher {
	s.Helper()
	w, err := s.Watch(s.ctx, scope, after)
	if err != nil {
		s.Fatalf("watch %+v after %d: %v", scope, after, err)
	}
	return w
}

// until reads batches up to a revision and checks that their revisions only grow.
func (s *suite) until(w store.Watcher, revision int64) []store.Batch {
	s.Helper()
	if err := w.RequestProgress(s.ctx); err != nil {
		s.Fatal(err)
	}
	var got []store.Batch
	last := int64(0)
	for last < revision {
		b, ok := <-w.Batches()
		if !ok {
			s.Fatalf("watch ended at %d, before %d: %v", last, revision, w.Err())
		}
		if b.Revision < last || len(b.Events) > 0 && b.Revision == last {
			s.Fatalf("batch of revision %d after one of %d", b.Revision, last)
		}
		last = b.Revision
		if len(b.Events) > 0 {
			got = append(got, b)
		}
	}
	return got
}

// happened formats events as in "ADDED RouteRule default/a@5".
func happened(batches []store.Batch) []string {
	var out []string
	for _, b := range batches {
		for _, ev := range b.Events {
			out = append(out, fmt.Sprintf("%s %s@%s", ev.Type, ev.Object.Key(), ev.Object.Meta.ResourceVersion))
		}
	}
	return out
}

func event(t store.EventType, obj *schema.Object) string {
	return fmt.Sprintf("%s %s@%s", t, obj.Key(), obj.Meta.ResourceVersion)
}

func (s *suite) wantEvents(batches []store.Batch, want ...string) {
	s.Helper()
	if diff := cmp.Diff(want, happened(batches)); diff != "" {
		s.Fatalf("events (-want +got):\n%s", diff)
	}
}

var watchCases = []testCase{
	{name: "tells what happens from now on", run: func(s *suite) {
		s.create(Rule(s, "default", "before", 1))
		w := s.watch(store.Scope{}, 0)
		added := s.create(Rule(s, "default", "a", 1))
		modified := s.update(Rule(s, "default", "a", 2))
		deleted := s.delete(added.Key())
		got := s.until(w, deleted.Revision())
		s.wantEvents(got, event(store.Added, added), event(store.Modified, modified), event(store.Deleted, deleted))
	}},
	{name: "carries whole objects and previous states", run: func(s *suite) {
		w := s.watch(store.Scope{}, 0)
		added := s.create(Rule(s, "default", "a", 1))
		modified := s.update(Rule(s, "default", "a", 2))
		deleted := s.delete(added.Key())
		var events []store.Event
		for _, b := range s.until(w, deleted.Revision()) {
			events = append(events, b.Events...)
		}
		for i, want := range []*schema.Object{added, modified, deleted} {
			s.wantSame(events[i].Object, want)
		}
		if events[0].Previous != nil {
			s.Errorf("an added object had a previous state")
		}
		for i, want := range []*schema.Object{added, modified} {
			if got := events[i+1].Previous; got != nil {
				s.wantSame(got, want)
			}
		}
	}},
	{name: "resumes after any revision without loss or repetition", run: func(s *suite) {
		var all []string
		var revisions []int64
		start := s.revision()
		for i := range 5 {
			obj := s.create(Rule(s, "default", fmt.Sprintf("rule-%d", i), 1))
			all, revisions = append(all, event(store.Added, obj)), append(revisions, obj.Revision())
		}
		end := revisions[len(revisions)-1]
		s.wantEvents(s.until(s.watch(store.Scope{}, start), end), all...)
		for i, after := range revisions[:len(revisions)-1] {
			s.wantEvents(s.until(s.watch(store.Scope{}, after), end), all[i+1:]...)
		}
	}},
	{name: "from a list's revision misses and repeats nothing", run: func(s *suite) {
		s.create(Rule(s, "default", "a", 1))
		list := s.list(store.Scope{}, store.ListOptions{})
		w := s.watch(store.Scope{}, list.Revision)
		next := s.create(Rule(s, "default", "b", 1))
		s.wantEvents(s.until(w, next.Revision()), event(store.Added, next))
	}},
	{name: "keeps to its scope", run: watchScopes},
	{name: "never splits a transaction", run: func(s *suite) {
		w := s.watch(store.Scope{}, 0)
		var last int64
		for round := range 3 {
			var ops []store.Op
			for i := range 20 {
				ops = append(ops, creating(Rule(s, "default", fmt.Sprintf("rule-%d-%02d", round, i), 1)))
			}
			last = s.txn(ops...)[0].Revision()
		}
		seen := map[string]int64{} // batch in which each revision of an object came
		for _, b := range s.until(w, last) {
			for _, ev := range b.Events {
				if batch, ok := seen[ev.Object.Meta.ResourceVersion]; ok && batch != b.Revision {
					s.Fatalf("revision %s is in batches %d and %d", ev.Object.Meta.ResourceVersion, batch, b.Revision)
				}
				seen[ev.Object.Meta.ResourceVersion] = b.Revision
			}
		}
		if len(seen) != 3 {
			s.Errorf("saw %d revisions, want 3", len(seen))
		}
	}},
	{name: "tells its progress when asked", run: func(s *suite) {
		w := s.watch(store.Scope{Kind: Kind(s, "ServiceEntry")}, 0)
		obj := s.create(Rule(s, "default", "a", 1))
		if got := s.until(w, obj.Revision()); len(got) > 0 {
			s.Errorf("events out of scope: %v", happened(got))
		}
	}},
	{name: "tells its progress though there was none", run: func(s *suite) {
		revision := s.create(Rule(s, "default", "a", 1)).Revision()
		w := s.watch(store.Scope{}, revision)
		for range 2 {
			if got := s.until(w, revision); len(got) > 0 {
				s.Errorf("told again: %v", happened(got))
			}
		}
	}},
	{name: "ends with its context", run: func(s *suite) {
		ctx, cancel := context.WithCancel(s.ctx)
		w, err := s.Watch(ctx, store.Scope{}, 0)
		if err != nil {
			s.Fatal(err)
		}
		if w.Err() != nil {
			s.Errorf("a running watch has the error %v", w.Err())
		}
		cancel()
		for range w.Batches() {
			continue
		}
		if !errors.Is(w.Err(), context.Canceled) {
			s.Errorf("ended with %v", w.Err())
		}
	}},
	{name: "may be asked for its end at any time", run: func(s *suite) {
		askForTheEnd(s, store.Scope{})
		askForTheEnd(s, store.Scope{Kind: Kind(s, "RouteRule")})
	}},
	{name: "from the future is ErrFuture", run: func(s *suite) {
		w, err := s.Watch(s.ctx, store.Scope{}, s.revision()+1000)
		s.wantErr(s.ending(w, err), store.ErrFuture)
	}},
}

// ending returns the error of a watch that must fail, at the call or later.
func (s *suite) ending(w store.Watcher, err error) error {
	if err != nil {
		return err
	}
	for range w.Batches() {
		continue
	}
	return w.Err()
}

// askForTheEnd calls Err of a watch all the while it runs, to let the race detector
// find races.
func askForTheEnd(s *suite, scope store.Scope) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	w, err := s.Watch(ctx, scope, 0)
	if err != nil {
		s.Fatal(err)
	}
	told := make(chan error, 1)
	go func() {
		err := w.Err()
		for err == nil && s.ctx.Err() == nil {
			err = w.Err()
		}
		told <- err
	}()
	cancel()
	for range w.Batches() {
		continue
	}
	if err := <-told; !errors.Is(err, context.Canceled) {
		s.Errorf("told of its end: %v", err)
	}
}

func watchScopes(s *suite) {
	rule := Kind(s, "RouteRule")
	scopes := []store.Scope{
		{Kind: rule}, {Namespace: "team"}, {Kind: rule, Namespace: "team"},
		{Kind: rule, Namespace: "team", Name: "a"},
	}
	var watchers []store.Watcher
	for _, scope := range scopes {
		watchers = append(watchers, s.watch(scope, 0))
	}
	var made []*schema.Object
	for _, obj := range []*schema.Object{
		Rule(s, "team", "a", 1), Rule(s, "team", "ab", 1), Rule(s, "team-a", "a", 1),
		Service(s, "team", "a"), Service(s, "default", "a"),
	} {
		made = append(made, s.create(obj))
	}
	for i, scope := range scopes {
		var want []string
		for _, obj := range made {
			if scope.Contains(obj.Key()) {
				want = append(want, event(store.Added, obj))
			}
		}
		s.wantEvents(s.until(watchers[i], made[len(made)-1].Revision()), want...)
	}
}
