package storetest

import (
	"cmp"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

func creating(obj *schema.Object) store.Op { return store.Op{Verb: store.OpCreate, Object: obj} }
func updating(obj *schema.Object) store.Op { return store.Op{Verb: store.OpUpdate, Object: obj} }
func deleting(obj *schema.Object) store.Op { return store.Op{Verb: store.OpDelete, Key: obj.Key()} }

func (s *suite) txn(ops ...store.Op) []*schema.Object {
	s.Helper()
	out, err := s.Txn(s.ctx, ops)
	if err != nil {
		s.Fatalf("txn: %v", err)
	}
	return out
}

func (s *suite) maxOps() int { return cmp.Or(s.can.Ops, store.MaxTxnOps) }

var txnCases = []testCase{
	{name: "of one operation is that operation", run: func(s *suite) {
		made := s.txn(creating(Rule(s, "default", "a", 1)))[0]
		s.wantSame(s.get(made.Key()), made)
		s.txn(updating(Rule(s, "default", "a", 2)))
		s.txn(deleting(made))
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}))
	}},
	{name: "is one revision", run: func(s *suite) {
		old := s.create(Rule(s, "default", "old", 1))
		kept := s.create(Rule(s, "default", "kept", 1))
		got := s.txn(
			creating(Rule(s, "default", "new", 1)),
			deleting(old),
			updating(Rule(s, "default", "kept", 2)),
			creating(Service(s, "other", "svc")),
		)
		for i, obj := range got {
			if obj.Revision() != s.revision() {
				s.Errorf("result %d is of revision %d, the store is at %d", i, obj.Revision(), s.revision())
			}
		}
		if got[1].Key() != old.Key() || got[2].Meta.UID != kept.Meta.UID || got[2].Meta.Generation != 2 {
			s.Errorf("results not in the order of the operations: %v", names(got))
		}
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}), got[2], got[0], got[3])
	}},
	{name: "that fails does nothing and names the first that failed", run: func(s *suite) {
		taken := s.create(Rule(s, "default", "taken", 1))
		revision := s.revision()
		missing := Rule(s, "default", "missing", 1)
		for _, c := range []struct {
			ops   []store.Op
			kind  error
			index int
		}{
			{[]store.Op{creating(Rule(s, "default", "b", 1)), creating(Rule(s, "default", "taken", 3))}, store.ErrExists, 1},
			{[]store.Op{creating(Rule(s, "default", "taken", 3)), updating(missing)}, store.ErrExists, 0},
			{[]store.Op{creating(Rule(s, "default", "b", 1)), updating(missing)}, store.ErrNotFound, 1},
			{[]store.Op{updating(Rule(s, "default", "taken", 2)), creating(Rule(s, "default", "b", 1)), deleting(missing)}, store.ErrNotFound, 2},
			{[]store.Op{deleting(missing), updating(at(s, Rule(s, "default", "taken", 2), "1"))}, store.ErrNotFound, 0},
			{[]store.Op{creating(missing), updating(at(s, Rule(s, "default", "taken", 2), "1"))}, store.ErrConflict, 1},
		} {
			_, err := s.Txn(s.ctx, c.ops)
			if e := s.wantErr(err, c.kind); e.Index != c.index {
				s.Errorf("error %v names operation %d, want %d", err, e.Index, c.index)
			}
		}
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}), taken)
		if got := s.revision(); got != revision {
			s.Errorf("revision went from %d to %d", revision, got)
		}
	}},
	{name: "with an update that changes nothing leaves that object alone", run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		got := s.txn(updating(Rule(s, "default", "a", 1)), creating(Rule(s, "default", "b", 1)))
		s.wantSame(got[0], first)
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}), first, got[1])
	}},
	{name: "applies what is there and what is not", run: func(s *suite) {
		old := s.create(Rule(s, "default", "old", 1))
		apply := func(obj *schema.Object) store.Op { return store.Op{Verb: store.OpApply, Object: obj} }
		got := s.txn(apply(Rule(s, "default", "old", 2)), apply(Rule(s, "default", "new", 1)))
		if got[0].Meta.UID != old.Meta.UID || got[0].Meta.Generation != 2 || got[1].Meta.Generation != 1 {
			s.Errorf("got %s and %s", got[0].JSON(), got[1].JSON())
		}
		again := s.txn(apply(Rule(s, "default", "old", 2)), apply(Rule(s, "default", "new", 1)))
		s.wantSame(again[0], got[0])
		s.wantSame(again[1], got[1])
		_, err := s.Txn(s.ctx, []store.Op{apply(at(s, Rule(s, "default", "old", 3), old.Meta.ResourceVersion))})
		s.wantErr(err, store.ErrConflict)
		_, err = s.Txn(s.ctx, []store.Op{apply(at(s, Rule(s, "default", "none", 3), old.Meta.ResourceVersion))})
		s.wantErr(err, store.ErrNotFound)
		gone := with(s, Rule(s, "default", "none", 3), func(m *metav1.ObjectMeta) { m.UID = old.Meta.UID })
		_, err = s.Txn(s.ctx, []store.Op{apply(gone)})
		s.wantErr(err, store.ErrConflict)
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}), again[1], again[0])
	}},
	{name: "may be as large as allowed", run: func(s *suite) {
		var ops []store.Op
		for i := range s.maxOps() {
			ops = append(ops, creating(Rule(s, "default", fmt.Sprintf("rule-%05d", i), i%1000)))
		}
		made := s.txn(ops...)
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}), made...)
	}},
	{name: "larger than allowed is refused, and does nothing", run: func(s *suite) {
		var ops []store.Op
		for i := range s.maxOps() + 1 {
			ops = append(ops, creating(Rule(s, "default", fmt.Sprintf("rule-%05d", i), i%1000)))
		}
		_, err := s.Txn(s.ctx, ops)
		if !errors.Is(err, store.ErrTooLarge) && !errors.Is(err, store.ErrInvalid) {
			s.Fatalf("got %v, want a refusal", err)
		}
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}))
	}},
}
