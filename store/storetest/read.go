package storetest

import (
	"context"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

var readCases = []testCase{
	{name: "get of nothing is ErrNotFound", run: func(s *suite) {
		for _, opts := range []store.ReadOptions{{}, {AtLeast: store.Any}} {
			_, err := s.Get(s.ctx, Rule(s, "default", "a", 1).Key(), opts)
			s.wantErr(err, store.ErrNotFound)
		}
	}},
	{name: "list of nothing is empty", run: func(s *suite) {
		list := s.list(store.Scope{}, store.ListOptions{})
		if list.Revision < 1 {
			s.Errorf("empty list at revision %d", list.Revision)
		}
		s.wantItems(list)
	}},
	{name: "list keeps to its scope, in order", run: listScopes},
	{name: "at least a revision that is reached answers", run: func(s *suite) {
		obj := s.create(Rule(s, "default", "a", 1))
		got, err := s.Get(s.ctx, obj.Key(), store.ReadOptions{AtLeast: obj.Revision()})
		if err != nil {
			s.Fatal(err)
		}
		s.wantSame(got, obj)
		s.wantItems(s.list(store.Scope{}, store.ListOptions{AtLeast: obj.Revision()}), obj)
	}},
	{name: "at least a revision that is not reached waits for it", run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		ended, cancel := context.WithCancel(s.ctx)
		cancel()
		if _, err := s.List(ended, store.Scope{}, store.ListOptions{AtLeast: first.Revision() + 1000}); err == nil {
			s.Fatal("a list at a revision that is not reached answered")
		}
		type answer struct {
			list *store.List
			err  error
		}
		answers := make(chan answer, 1)
		go func() {
			list, err := s.List(s.ctx, store.Scope{}, store.ListOptions{AtLeast: first.Revision() + 1})
			answers <- answer{list, err}
		}()
		second := s.create(Rule(s, "default", "b", 1))
		got := <-answers
		if got.err != nil {
			s.Fatal(got.err)
		}
		s.wantItems(got.list, first, second)
	}},
	{name: "exact list shows the past", run: exactLists},
	{name: "pages at one revision are the list", run: pages},
	{name: "a page after a key that is gone, or of another kind", run: pagesAfterAnything},
	{name: "exact list of the future is ErrFuture", run: func(s *suite) {
		_, err := s.List(s.ctx, store.Scope{}, store.ListOptions{Exact: s.revision() + 1000})
		s.wantErr(err, store.ErrFuture)
	}},
	{name: "the caller may change a list", run: func(s *suite) {
		a, b := s.create(Rule(s, "default", "a", 1)), s.create(Rule(s, "default", "b", 1))
		clear(s.list(store.Scope{}, store.ListOptions{}).Items)
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}), a, b)
	}},
}

func listScopes(s *suite) {
	rule, service := Kind(s, "RouteRule"), Kind(s, "ServiceEntry")
	// A dash and a dot sort before a slash, which separates the parts of a key.
	one := map[string]*schema.Object{}
	for _, obj := range []*schema.Object{
		Service(s, "team", "z"), Rule(s, "team-a", "x", 1), Rule(s, "team", "y.z", 1),
		Rule(s, "team", "y", 1), Rule(s, "team", "y-z", 1), Service(s, "default", "a"),
	} {
		one[obj.Key().String()] = s.create(obj)
	}
	rules := []*schema.Object{
		one["RouteRule team-a/x"], one["RouteRule team/y"], one["RouteRule team/y-z"], one["RouteRule team/y.z"],
	}
	services := []*schema.Object{one["ServiceEntry default/a"], one["ServiceEntry team/z"]}
	for _, c := range []struct {
		scope store.Scope
		want  []*schema.Object
	}{
		{store.Scope{}, append(rules[:4:4], services...)},
		{store.Scope{Kind: rule}, rules},
		{store.Scope{Kind: service}, services},
		{store.Scope{Namespace: "team"}, append(rules[1:4:4], services[1])},
		{store.Scope{Kind: rule, Namespace: "team"}, rules[1:]},
		{store.Scope{Kind: rule, Namespace: "team", Name: "y"}, rules[1:2]},
		{store.Scope{Kind: rule, Namespace: "tea"}, nil},
		{store.Scope{Kind: rule, Namespace: "team", Name: "none"}, nil},
	} {
		for _, opts := range []store.ListOptions{{}, {AtLeast: s.revision()}, {Exact: s.revision()}} {
			s.wantItems(s.list(c.scope, opts), c.want...)
		}
	}
}

func exactLists(s *suite) {
	type state struct {
		revision int64
		items    []*schema.Object
	}
	var past []state
	remember := func(items ...*schema.Object) { past = append(past, state{s.revision(), items}) }

	remember()
	a := s.create(Rule(s, "default", "a", 1))
	remember(a)
	b := s.create(Rule(s, "default", "b", 1))
	remember(a, b)
	a2 := s.update(Rule(s, "default", "a", 2))
	remember(a2, b)
	s.delete(b.Key())
	remember(a2)
	b2 := s.create(Rule(s, "default", "b", 1))
	remember(a2, b2)
	for _, then := range past {
		list := s.list(store.Scope{}, store.ListOptions{Exact: then.revision})
		if list.Revision != then.revision {
			s.Errorf("exact list of %d says %d", then.revision, list.Revision)
		}
		s.wantItems(list, then.items...)
	}
}

// pageFixture creates objects that differ in each part of the sort order, and returns
// them in list order.
func pageFixture(s *suite) []*schema.Object {
	made := []*schema.Object{
		Rule(s, "default", "a", 1), Rule(s, "default", "b", 1),
		Rule(s, "team-a", "a", 1), Rule(s, "team-a", "z", 1),
		Rule(s, "team", "a", 1), Rule(s, "team", "a-b", 1), Rule(s, "team", "a.b", 1),
		Service(s, "default", "a"), Service(s, "team", "a"),
	}
	for i, obj := range made {
		made[i] = s.create(obj)
	}
	return made
}

func pages(s *suite) {
	all := pageFixture(s)
	scopes := []store.Scope{
		{}, {Kind: Kind(s, "RouteRule")}, {Namespace: "team"}, {Kind: Kind(s, "RouteRule"), Namespace: "team"},
		{Kind: Kind(s, "RouteRule"), Namespace: "team", Name: "a"}, {Namespace: "nobody"},
	}
	revision := s.revision()
	// Changes after the first page are in no later page.
	s.create(Rule(s, "team", "c", 1))
	s.update(Rule(s, "team-a", "z", 2))
	s.delete(all[6].Key())
	for _, scope := range scopes {
		var want []*schema.Object
		for _, obj := range all {
			if scope.Contains(obj.Key()) {
				want = append(want, obj)
			}
		}
		for _, limit := range []int{1, 2, 3, len(all), len(all) + 1} {
			whole := &store.List{Revision: revision}
			opts := store.ListOptions{Exact: revision, Limit: limit}
			for more := true; more; {
				page := s.list(scope, opts)
				if page.Revision != revision || len(page.Items) > limit {
					s.Fatalf("a page of %d at most has %d, at %d instead of %d", limit, len(page.Items), page.Revision, revision)
				}
				whole.Items = append(whole.Items, page.Items...)
				if left := len(want) - len(whole.Items); page.Remaining >= 0 && page.Remaining != left {
					s.Fatalf("%d remain after %v, want %d", page.Remaining, names(whole.Items), left)
				}
				if more = page.Remaining != 0 && len(page.Items) > 0; more {
					opts.After = page.Items[len(page.Items)-1].Key()
				}
			}
			s.wantItems(whole, want...)
		}
	}
}

func pagesAfterAnything(s *suite) {
	all := pageFixture(s)
	for _, c := range []struct {
		after schema.Key
		scope store.Scope
		want  []*schema.Object
	}{
		{schema.Key{Kind: "RouteRule", Namespace: "default", Name: "a-gone"}, store.Scope{}, all[1:]},
		{schema.Key{Kind: "RouteRule", Namespace: "team-b", Name: "a"}, store.Scope{}, all[4:]},
		{schema.Key{Kind: "RouteRule", Namespace: "zoo", Name: "a"}, store.Scope{Kind: Kind(s, "RouteRule")}, nil},
		{schema.Key{Kind: "RouteRule", Namespace: "default", Name: "a"}, store.Scope{Kind: Kind(s, "RouteRule"), Namespace: "team"}, all[4:7]},
		{schema.Key{Kind: "RouteRule", Namespace: "zoo", Name: "a"}, store.Scope{Kind: Kind(s, "RouteRule"), Namespace: "team"}, nil},
	} {
		for _, exact := range []int64{0, s.revision()} {
			list := s.list(c.scope, store.ListOptions{Exact: exact, After: c.after})
			if list.Remaining != 0 {
				s.Errorf("%d remain of a list without a limit", list.Remaining)
			}
			s.wantItems(list, c.want...)
		}
	}
}
