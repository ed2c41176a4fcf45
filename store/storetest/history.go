package storetest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

func (s *suite) records() int { return cmp.Or(s.can.Records, 10) }

func (s *suite) settle() {
	if s.can.Settle != nil {
		s.can.Settle(s.TB, s.Interface)
	}
}

func (s *suite) history(key schema.Key) []store.Version {
	s.Helper()
	versions, err := s.History(s.ctx, key)
	if err != nil {
		s.Fatalf("history of %s: %v", key, err)
	}
	return versions
}

// wantVersions checks the versions of an object, the newest first, each given as "verb
// revision generation" with "-" for what is missing.
func (s *suite) wantVersions(key schema.Key, want ...string) []store.Version {
	s.Helper()
	versions := s.history(key)
	var got []string
	for _, v := range versions {
		verb, generation := "-", "-"
		if v.Change != nil {
			verb = string(v.Change.Verb)
			if v.Change.Revision != v.Revision {
				s.Errorf("version of revision %d began with a change of %d", v.Revision, v.Change.Revision)
			}
		}
		if v.Object != nil {
			generation = fmt.Sprint(v.Object.Meta.Generation)
			if v.Object.Revision() != v.Revision {
				s.Errorf("version of revision %d is an object of %d", v.Revision, v.Object.Revision())
			}
		}
		got = append(got, fmt.Sprintf("%s %d %s", verb, v.Revision, generation))
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		s.Fatalf("history of %s (-want +got):\n%s", key, diff)
	}
	return versions
}

func (s *suite) since(scope store.Scope, revision int64) []store.Difference {
	s.Helper()
	out, err := s.Changes(s.ctx, scope, revision)
	if err != nil {
		s.Fatalf("since %d: %v", revision, err)
	}
	return out
}

// wantPages checks that the pages together have the same differences as the whole.
func (s *suite) wantPages(scope store.Scope, opts store.ChangesOptions, want []store.Difference) {
	s.Helper()
	var got []store.Difference
	for more := true; more; { // A page before another has at least one difference.
		var page []store.Difference
		var err error
		if page, more, err = s.ChangesPage(s.ctx, scope, opts); err != nil {
			s.Fatalf("page %+v: %v", opts, err)
		}
		if len(page) > opts.Limit {
			s.Fatalf("page %+v has %d differences", opts, len(page))
		}
		if got = append(got, page...); len(page) > 0 {
			opts.After = page[len(page)-1].Key
		}
	}
	store.SortDifferences(got)
	text := func(ds []store.Difference) (out []string) {
		for _, d := range ds {
			out = append(out, fmt.Sprintf("%s %d", d.Key, d.Revision))
		}
		return out
	}
	if diff := gocmp.Diff(text(want), text(got)); diff != "" {
		s.Errorf("pages of %d (-want +got):\n%s", opts.Limit, diff)
	}
}

// rollback restores a scope to a revision in one transaction.
func (s *suite) rollback(scope store.Scope, revision int64) []*schema.Object {
	s.Helper()
	var ops []store.Op
	for _, d := range s.since(scope, revision) {
		op, ok, err := d.Undo()
		if err != nil {
			s.Fatalf("undo %s: %v", d.Key, err)
		}
		if ok {
			ops = append(ops, op)
		}
	}
	return s.txn(ops...)
}

func specs(objs []*schema.Object) map[schema.Key]string {
	out := make(map[schema.Key]string)
	for _, o := range objs {
		out[o.Key()] = string(o.SpecJSON())
	}
	return out
}

var historyCases = []testCase{
	{name: "tells each version, and who made it", run: func(s *suite) {
		ctx := store.WithAuthor(s.ctx, store.Author{User: "ada", UserAgent: "storetest"})
		began := time.Now().Truncate(time.Second).Add(-time.Second)
		first, err := s.Create(ctx, Rule(s, "default", "a", 1))
		if err != nil {
			s.Fatal(err)
		}
		second := s.update(Rule(s, "default", "a", 2))
		gone := s.delete(first.Key())
		again := s.create(Rule(s, "default", "a", 3))
		versions := s.wantVersions(first.Key(),
			fmt.Sprintf("create %d 1", again.Revision()),
			fmt.Sprintf("delete %d -", gone.Revision()),
			fmt.Sprintf("update %d 2", second.Revision()),
			fmt.Sprintf("create %d 1", first.Revision()))
		s.wantSame(versions[0].Object, again)
		s.wantSame(versions[2].Object, second)
		s.wantSame(versions[3].Object, first)
		made := versions[3].Change
		if made.Author != (store.Author{User: "ada", UserAgent: "storetest"}) || made.Time.Before(began) || made.Time.After(time.Now().Add(time.Second)) {
			s.Errorf("made by %+v at %s", made.Author, made.Time)
		}
		if made.Transaction == "" || made.Transaction == versions[2].Change.Transaction {
			s.Errorf("transactions %q and %q", made.Transaction, versions[2].Change.Transaction)
		}
	}},
	{name: "of what never was is not found", run: func(s *suite) {
		_, err := s.History(s.ctx, Rule(s, "default", "none", 1).Key())
		s.wantErr(err, store.ErrNotFound)
	}},
	{name: "notes nothing when nothing changes", run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 1))
		s.update(Rule(s, "default", "a", 1))
		s.wantVersions(made.Key(), fmt.Sprintf("create %d 1", made.Revision()))
	}},
	{name: "knows objects that wait for their finalizers", run: func(s *suite) {
		made := s.create(guarded(s, 1, cleanUp))
		marked := s.delete(made.Key())
		gone := s.update(guarded(s, 1))
		s.wantVersions(made.Key(),
			fmt.Sprintf("delete %d -", gone.Revision()),
			fmt.Sprintf("update %d 2", marked.Revision()),
			fmt.Sprintf("create %d 1", made.Revision()))
	}},
	{name: "keeps the newest records of each object", needs: needsBound, run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 0))
		var want []string
		changes := s.records() + 5
		for i := 1; i <= changes; i++ {
			changed := s.update(Rule(s, "default", "a", i))
			want = append([]string{fmt.Sprintf("update %d %d", changed.Revision(), i+1)}, want...)
		}
		s.settle()
		kept := want[:s.records()]
		oldest := s.history(made.Key())
		last := oldest[len(oldest)-1]
		s.wantVersions(made.Key(), append(kept, fmt.Sprintf("- %d %d", last.Revision, changes-s.records()+1))...)
	}},
	{name: "shares the name of a transaction among its changes", run: func(s *suite) {
		made := s.txn(creating(Rule(s, "default", "a", 1)), creating(Rule(s, "default", "b", 1)))
		a, b := s.history(made[0].Key()), s.history(made[1].Key())
		if a[0].Change.Transaction != b[0].Change.Transaction {
			s.Errorf("one transaction has the names %q and %q", a[0].Change.Transaction, b[0].Change.Transaction)
		}
	}},
	{name: "keeps a large state", run: func(s *suite) {
		made := s.create(Large(s, "default", "a", 250_000))
		s.update(Rule(s, "default", "a", 2))
		s.wantSame(s.history(made.Key())[1].Object, made)
	}},
	{name: "brings a namespace back to what it was", run: func(s *suite) {
		s.create(Rule(s, "default", "changed", 1))
		s.create(Rule(s, "default", "deleted", 1))
		s.create(Service(s, "default", "svc"))
		other := s.create(Rule(s, "other", "changed", 1))
		before := s.list(store.Scope{Namespace: "default"}, store.ListOptions{})
		s.update(Rule(s, "default", "changed", 2))
		s.update(Rule(s, "default", "changed", 3))
		s.delete(Rule(s, "default", "deleted", 1).Key())
		s.create(Rule(s, "default", "new", 1))
		s.update(Rule(s, "other", "changed", 2))
		s.create(Rule(s, "default", "new-and-gone", 1))
		s.delete(Rule(s, "default", "new-and-gone", 1).Key())

		s.rollback(store.Scope{Namespace: "default"}, before.Revision)
		after := s.list(store.Scope{Namespace: "default"}, store.ListOptions{})
		if diff := gocmp.Diff(specs(before.Items), specs(after.Items)); diff != "" {
			s.Errorf("(-before +after):\n%s", diff)
		}
		if got := s.get(other.Key()); got.Meta.Generation != 2 {
			s.Errorf("an object of another namespace is of generation %d", got.Meta.Generation)
		}
		if done := s.rollback(store.Scope{Namespace: "default"}, before.Revision); len(done) != 0 {
			s.Errorf("rolled back twice: %v", names(done))
		}
	}},
	{name: "rolls back one object", run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 1))
		s.update(Rule(s, "default", "a", 2))
		other := s.create(Rule(s, "default", "b", 1))
		s.update(Rule(s, "default", "b", 2))
		s.rollback(store.Scope{Kind: made.Kind, Namespace: "default", Name: "a"}, made.Revision())
		if got := s.get(made.Key()); string(got.SpecJSON()) != string(made.SpecJSON()) || got.Meta.Generation != 3 {
			s.Errorf("rolled back to %s", got.JSON())
		}
		if got := s.get(other.Key()); got.Meta.Generation != 2 {
			s.Errorf("another object is of generation %d", got.Meta.Generation)
		}
	}},
	{name: "refuses to go back further than it knows, or into the future", needs: needsBound, run: func(s *suite) {
		made := s.create(Rule(s, "default", "often-changed", 0))
		for i := range s.records() + 5 {
			s.update(Rule(s, "default", "often-changed", i+1))
		}
		s.settle()
		_, err := s.Changes(s.ctx, store.Scope{}, made.Revision())
		s.wantErr(err, store.ErrExpired)
		if !strings.Contains(err.Error(), "often-changed") {
			s.Errorf("%v does not name the object", err)
		}
		_, err = s.Changes(s.ctx, store.Scope{}, s.revision()+1)
		s.wantErr(err, store.ErrFuture)
		if got := s.since(store.Scope{}, s.revision()); len(got) != 0 {
			s.Errorf("since now: %v", got)
		}
	}},
	{name: "does not take a life that is forgotten for none", needs: needsBound, run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 0))
		s.delete(made.Key())
		again := s.create(Rule(s, "default", "a", 0))
		_, err := store.VersionAt(s.history(made.Key()), made.Key(), again.Revision()-1)
		s.wantErr(err, store.ErrNotFound)
		for i := range s.records() - 1 {
			s.update(Rule(s, "default", "a", i+1))
		}
		s.settle()
		_, err = store.VersionAt(s.history(made.Key()), made.Key(), made.Revision())
		s.wantErr(err, store.ErrExpired)
		_, err = s.Changes(s.ctx, store.Scope{}, made.Revision())
		s.wantErr(err, store.ErrExpired)
	}},
	{name: "tells changes in pages", run: func(s *suite) {
		names := []string{"a", "a-b", "a-b-c", "a-c", "a.b", "aa", "b"}
		for _, name := range names {
			s.create(Rule(s, "default", name, 1))
		}
		s.create(Service(s, "default", "a"))
		s.create(Rule(s, "default-b", "a", 1))
		before := s.revision()
		for i, name := range names {
			if i%3 == 0 {
				s.delete(Rule(s, "default", name, 1).Key())
			} else {
				s.update(Rule(s, "default", name, 2))
			}
		}
		s.create(Rule(s, "default", "a-0", 1))
		s.create(Rule(s, "default", "a-b.c", 1))
		s.update(Rule(s, "default-b", "a", 2))
		s.delete(Service(s, "default", "a").Key())
		for _, scope := range []store.Scope{
			{}, {Namespace: "default"}, {Kind: Kind(s, "RouteRule")}, {Kind: Kind(s, "RouteRule"), Namespace: "default", Name: "a"},
			{Kind: Kind(s, "RouteRule"), Namespace: "default", Name: "aa"},
		} {
			want := s.since(scope, before)
			for limit := 1; limit <= len(want)+1; limit++ {
				s.wantPages(scope, store.ChangesOptions{Since: before, Limit: limit}, want)
			}
		}
		_, _, err := s.ChangesPage(s.ctx, store.Scope{}, store.ChangesOptions{Since: s.revision() + 1, Limit: 1})
		s.wantErr(err, store.ErrFuture)
	}},
	{name: "bounds pages of changes in bytes", run: func(s *suite) {
		before, n := s.revision(), 24
		for i := range n {
			s.create(Large(s, "default", fmt.Sprintf("large-%d", i), 250_000))
		}
		opts := store.ChangesOptions{Since: before, Limit: n}
		page, more, err := s.ChangesPage(s.ctx, store.Scope{}, opts)
		if err != nil || !more || len(page) == 0 || len(page) >= n {
			s.Fatalf("%d of %d large objects, more %t, %v", len(page), n, more, err)
		}
		s.wantPages(store.Scope{}, opts, s.since(store.Scope{}, before))
	}},
	{name: "undoes nothing that somebody changed meanwhile", run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 1))
		s.update(Rule(s, "default", "a", 2))
		d := s.since(store.Scope{}, made.Revision())[0]
		op, _, err := d.Undo()
		if err != nil {
			s.Fatal(err)
		}
		s.update(Rule(s, "default", "a", 3))
		_, err = s.Txn(s.ctx, []store.Op{op})
		s.wantErr(err, store.ErrConflict)
	}},
}
