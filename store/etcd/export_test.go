package etcd

import (
	"context"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Settle trims at once what KeepHistory would trim in a moment.
func Settle(ctx context.Context, s *Store) error { return s.trim(ctx, s.surplus.take()) }

// Sweep looks over all records as if it were later.
var Sweep = (*Store).sweep

// Together does operations as one batch of the group, as if all had come while a
// transaction was under way: each has its own result.
func (s *Store) Together(ctx context.Context, ops ...store.Op) (objects []*schema.Object, succeeded []bool, err error) {
	b := &batch{}
	for _, op := range ops {
		w, err := s.plan([]store.Op{op})
		if err == nil && !s.guesses.fill(w) {
			err = s.ask(ctx, w)
		}
		if err == nil {
			err = s.prepare(ctx, w)
		}
		if err != nil {
			return nil, nil, err
		}
		b.members = append(b.members, &member{write: w, batch: b, done: make(chan struct{})})
	}
	s.commitBatch(ctx, b)
	for _, m := range b.members {
		<-m.done
		if m.err != nil {
			return nil, nil, m.err
		}
		objects, succeeded = append(objects, m.results(m.revision)[0]), append(succeeded, m.succeeded)
	}
	return objects, succeeded, nil
}

// Batches are the objects that the group would send together, if these operations
// waited.
func (s *Store) Batches(most int, ops ...store.Op) (batches [][]schema.Key) {
	for _, op := range ops {
		w, err := s.plan([]store.Op{op})
		if err != nil {
			panic(err)
		}
		w.values, w.records = [][]byte{op.Object.Encoded()}, [][]byte{nil}
		s.group.waiting = append(s.group.waiting, &member{write: w})
	}
	for b := s.group.next(most, nil); b != nil; b = s.group.next(most, nil) {
		var keys []schema.Key
		for _, m := range b.members {
			keys = append(keys, m.ops[0].Target())
		}
		batches = append(batches, keys)
	}
	return batches
}
