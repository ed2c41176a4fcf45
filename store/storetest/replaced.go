package storetest

import (
	"context"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// replacing does a write, and checks which states it says that it replaced.
func (s *suite) replacing(name string, want []*schema.Object, write func(ctx context.Context) error) {
	s.Helper()
	r := &store.Replaced{}
	if err := write(store.WithReplaced(s.ctx, r)); (err == nil) != (want != nil) {
		s.Fatalf("%s: %v", name, err)
	}
	if len(r.Before) != len(want) {
		s.Fatalf("%s: replaced %d, want %d", name, len(r.Before), len(want))
	}
	for i, before := range r.Before {
		switch {
		case (before == nil) != (want[i] == nil):
			s.Errorf("%s: operation %d replaced %v, want %v", name, i, before, want[i])
		case before != nil:
			s.wantSame(before, want[i])
		}
	}
}

var replacedCases = []testCase{
	{name: "is what each write found", needs: needsReplaced, run: func(s *suite) {
		rule := func(precedence int) *schema.Object { return Rule(s, "default", "a", precedence) }
		key := rule(1).Key()
		var last *schema.Object
		keep := func(o *schema.Object, err error) error {
			if err == nil {
				last = o
			}
			return err
		}
		s.replacing("create", []*schema.Object{nil}, func(ctx context.Context) error { return keep(s.Create(ctx, rule(1))) })
		s.replacing("create again", nil, func(ctx context.Context) error { return keep(s.Create(ctx, rule(1))) })
		s.replacing("update", []*schema.Object{last}, func(ctx context.Context) error { return keep(s.Update(ctx, rule(2))) })
		s.replacing("idle update", []*schema.Object{last}, func(ctx context.Context) error { return keep(s.Update(ctx, rule(2))) })
		s.replacing("update of another state", nil, func(ctx context.Context) error { return keep(s.Update(ctx, at(s, rule(3), "1"))) })
		s.replacing("change", []*schema.Object{last}, func(ctx context.Context) error {
			return keep(s.UpdateFunc(ctx, key, func(*schema.Object) (*schema.Object, error) { return rule(4), nil }))
		})
		other := s.create(Rule(s, "default", "b", 1))
		s.replacing("transaction", []*schema.Object{other, nil, last}, func(ctx context.Context) error {
			done, err := s.Txn(ctx, []store.Op{deleting(other), creating(Rule(s, "default", "c", 1)), {Verb: store.OpApply, Object: rule(5)}})
			if err == nil {
				last = done[2]
			}
			return err
		})
		s.replacing("delete", []*schema.Object{last}, func(ctx context.Context) error { return keep(s.Delete(ctx, key, store.Preconditions{})) })
		s.replacing("delete again", nil, func(ctx context.Context) error { return keep(s.Delete(ctx, key, store.Preconditions{})) })
	}},
}
