package storetest

import (
	"github.com/pilot-api/pilot-api/store"
)

var expiryCases = []testCase{
	{name: "a watch from before a compaction is ErrExpired", needs: needsCompact, run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		s.update(Rule(s, "default", "a", 2))
		last := s.update(Rule(s, "default", "a", 3))
		s.can.Compact(s, s.Interface, last.Revision())
		w, err := s.Watch(s.ctx, store.Scope{}, first.Revision())
		s.wantErr(s.ending(w, err), store.ErrExpired)
	}},
	{name: "a watch from the compacted revision goes on", needs: needsCompact, run: func(s *suite) {
		s.create(Rule(s, "default", "a", 1))
		last := s.update(Rule(s, "default", "a", 2))
		s.can.Compact(s, s.Interface, last.Revision())
		w := s.watch(store.Scope{}, last.Revision())
		gone := s.delete(last.Key())
		s.wantEvents(s.until(w, gone.Revision()), event(store.Deleted, gone))
	}},
	{name: "an exact list from before a compaction is ErrExpired", needs: needsCompact, run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		last := s.update(Rule(s, "default", "a", 2))
		s.can.Compact(s, s.Interface, last.Revision())
		_, err := s.List(s.ctx, store.Scope{}, store.ListOptions{Exact: first.Revision()})
		s.wantErr(err, store.ErrExpired)
		s.wantItems(s.list(store.Scope{}, store.ListOptions{Exact: last.Revision()}), last)
	}},
	{name: "what is stored survives a compaction", needs: needsCompact, run: func(s *suite) {
		a := s.create(Rule(s, "default", "a", 1))
		b := s.create(Rule(s, "default", "b", 1))
		s.can.Compact(s, s.Interface, b.Revision())
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}), a, b)
	}},
}
