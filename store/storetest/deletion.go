package storetest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

const (
	cleanUp = "example.com/clean-up"
	audit   = "example.com/audit"
)

// guarded returns a rule with finalizers.
func guarded(s *suite, precedence int, finalizers ...string) *schema.Object {
	s.Helper()
	return with(s, Rule(s, "default", "a", precedence), func(m *metav1.ObjectMeta) { m.Finalizers = finalizers })
}

// wantMarked checks that an object is unchanged except for its mark for deletion.
func (s *suite) wantMarked(got, before *schema.Object) {
	s.Helper()
	meta := got.Meta
	if meta.DeletionTimestamp.IsZero() || meta.DeletionGracePeriodSeconds == nil || *meta.DeletionGracePeriodSeconds != 0 {
		s.Fatalf("not marked: %s", got.JSON())
	}
	s.wantSame(at(s, got, ""), with(s, before, func(m *metav1.ObjectMeta) {
		m.DeletionTimestamp, m.DeletionGracePeriodSeconds = meta.DeletionTimestamp, meta.DeletionGracePeriodSeconds
		m.Generation++
		m.ResourceVersion = ""
	}))
}

func lastEvent(batches []store.Batch) store.Event {
	events := batches[len(batches)-1].Events
	return events[len(events)-1]
}

var deletionCases = []testCase{
	{name: "with finalizers marks, and the last one that goes removes", run: func(s *suite) {
		w := s.watch(store.Scope{}, 0)
		made := s.create(guarded(s, 1, cleanUp, audit))
		marked := s.delete(made.Key())
		s.wantMarked(marked, made)
		s.wantSame(s.get(made.Key()), marked)
		half := s.update(guarded(s, 1, audit))
		s.wantSame(s.get(made.Key()), half)
		gone := s.update(guarded(s, 1))
		if len(gone.Meta.Finalizers) != 0 || gone.Meta.DeletionTimestamp == nil || gone.Revision() != s.revision() {
			s.Errorf("removed at %d as %s", s.revision(), gone.JSON())
		}
		_, err := s.Get(s.ctx, made.Key(), store.ReadOptions{})
		s.wantErr(err, store.ErrNotFound)
		got := s.until(w, gone.Revision())
		s.wantEvents(got, event(store.Added, made), event(store.Modified, marked), event(store.Modified, half), event(store.Deleted, gone))
		s.wantSame(at(s, lastEvent(got).Object, ""), at(s, half, ""))
		s.create(guarded(s, 1))
	}},
	{name: "of what is being deleted changes nothing", run: func(s *suite) {
		made := s.create(guarded(s, 1, cleanUp))
		marked := s.delete(made.Key())
		revision := s.revision()
		s.wantSame(s.delete(made.Key()), marked)
		if got := s.revision(); got != revision {
			s.Errorf("revision went from %d to %d", revision, got)
		}
	}},
	{name: "with finalizers keeps its preconditions", run: func(s *suite) {
		made := s.create(guarded(s, 1, cleanUp))
		_, err := s.Delete(s.ctx, made.Key(), store.Preconditions{UID: "another"})
		s.wantErr(err, store.ErrConflict)
		marked := s.delete(made.Key())
		_, err = s.Delete(s.ctx, made.Key(), store.Preconditions{ResourceVersion: made.Meta.ResourceVersion})
		s.wantErr(err, store.ErrConflict)
		s.wantSame(s.get(made.Key()), marked)
	}},
	{name: "without finalizers left removes at once", run: func(s *suite) {
		made := s.create(guarded(s, 1, cleanUp))
		s.update(guarded(s, 1))
		s.delete(made.Key())
		_, err := s.Get(s.ctx, made.Key(), store.ReadOptions{})
		s.wantErr(err, store.ErrNotFound)
	}},
	{name: "is final: no update takes it back or guards it anew", run: func(s *suite) {
		made := s.create(guarded(s, 1, cleanUp))
		marked := s.delete(made.Key())
		e := s.wantInvalid(s.Update(s.ctx, guarded(s, 1, cleanUp, audit)))
		if len(e.Problems) != 1 || e.Problems[0].Field != "metadata.finalizers[1]" {
			s.Errorf("problems %v", e.Problems)
		}
		s.wantSame(s.get(made.Key()), marked)
		changed := s.update(guarded(s, 2, cleanUp))
		if !changed.Meta.DeletionTimestamp.Equal(marked.Meta.DeletionTimestamp) || changed.Meta.Generation != marked.Meta.Generation+1 {
			s.Errorf("updated to %s", changed.JSON())
		}
	}},
	{name: "is the server's to tell", run: func(s *suite) {
		claim := func(m *metav1.ObjectMeta) {
			then, grace := metav1.NewTime(time.Unix(1, 0)), int64(30)
			m.DeletionTimestamp, m.DeletionGracePeriodSeconds = &then, &grace
			//lint:ignore SA1019 What clients still send must not be stored.
			m.CreationTimestamp, m.Generation, m.SelfLink = then, 77, "/somewhere"
		}
		made := s.create(with(s, guarded(s, 1, cleanUp), claim))
		revision := s.revision()
		s.wantSame(s.update(with(s, guarded(s, 1, cleanUp), claim)), made)
		//lint:ignore SA1019 As above.
		if made.Meta.DeletionTimestamp != nil || made.Meta.DeletionGracePeriodSeconds != nil || made.Meta.SelfLink != "" ||
			made.Meta.Generation != 1 || made.Meta.CreationTimestamp.Unix() == 1 || s.revision() != revision {
			s.Errorf("a client set what is the server's: %s", made.JSON())
		}
	}},
	{name: "of several objects in a transaction goes its own way for each", run: func(s *suite) {
		kept := s.create(guarded(s, 1, cleanUp))
		gone := s.create(Rule(s, "default", "b", 1))
		out := s.txn(deleting(kept), deleting(gone))
		s.wantMarked(out[0], kept)
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}), out[0])
		last := s.txn(updating(guarded(s, 1)), creating(Rule(s, "default", "b", 2)))
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}), last[1])
	}},
}
