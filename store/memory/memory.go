// Package memory implements the contract of package store in memory, for tests and for
// tools that work on files without a server. It implements the whole contract:
// revisions, transactions, watches from a revision, lists of the past, and a bounded
// log of changes that can be compacted.
package memory

import (
	"context"
	"sync"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// KeptChanges is the approximate number of changes kept for watches and lists of the
// past. store.ChangeLogBytes bounds them too.
const KeptChanges = 10_000

// Store is a store in memory. Create one with New.
type Store struct {
	store.Verbs
	mu      sync.RWMutex
	index   store.Index
	log     *store.ChangeLog
	records map[schema.Key][]store.Record // the oldest first
}

var (
	_ store.Interface = (*Store)(nil)
	_ store.Rewinder  = (*Store)(nil)
	_ store.Counter   = (*Store)(nil)
)

// New returns an empty store at revision 1, like a new etcd.
func New() *Store {
	s := &Store{log: store.NewChangeLog(1, KeptChanges), records: make(map[schema.Key][]store.Record)}
	s.Verbs = store.VerbsOf(s.Txn)
	return s
}

// Compact drops the changes up to and including a revision. Later watches and lists
// from before it fail with ErrExpired.
func (s *Store) Compact(revision int64) { s.log.Compact(revision) }

// Rewind implements store.Rewinder.
func (s *Store) Rewind(_ context.Context, to int64) (int64, error) {
	return min(max(to, s.log.Floor()), s.log.Revision()), nil
}

// Revision implements store.Reader.
func (s *Store) Revision(context.Context) (int64, error) { return s.log.Revision(), nil }

// Repeat implements store.Repeater.
func (s *Store) Repeat(scope store.Scope, revision int64) ([]store.Event, error) {
	return s.log.Repeat(scope, revision)
}

// Count implements store.Counter.
func (s *Store) Count(context.Context) (count int, revision int64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.index.Len(), s.log.Revision(), nil
}

// Get implements store.Reader.
func (s *Store) Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error) {
	if err := s.log.Wait(ctx, opts.AtLeast); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if obj := s.index.Get(key); obj != nil {
		return obj, nil
	}
	return nil, &store.Error{Kind: store.ErrNotFound, Key: key}
}

// List implements store.Reader.
func (s *Store) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	if opts.Exact != 0 {
		return s.listExact(scope, opts)
	}
	if err := s.log.Wait(ctx, opts.AtLeast); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	items, remaining := opts.Page(s.index.List(scope))
	return &store.List{Revision: s.log.Revision(), Items: items, Remaining: remaining}, nil
}

func (s *Store) listExact(scope store.Scope, opts store.ListOptions) (*store.List, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.reachedLocked(opts.Exact); err != nil {
		return nil, err
	}
	later, err := s.log.Since(opts.Exact)
	if err != nil {
		return nil, err
	}
	items, remaining := opts.Page(s.index.ListBefore(scope, later))
	return &store.List{Revision: opts.Exact, Items: items, Remaining: remaining}, nil
}

// Watch implements store.Reader.
func (s *Store) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.reachedLocked(after); err != nil {
		return nil, err
	}
	if after == 0 {
		after = s.log.Revision()
	}
	return s.log.Watch(ctx, scope, after)
}

func (s *Store) reachedLocked(revision int64) error {
	if newest := s.log.Revision(); revision > newest {
		return store.NotReached(revision, newest)
	}
	return nil
}

// Txn implements store.Interface.
func (s *Store) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := store.CheckOps(ops); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := store.Batch{Revision: s.log.Revision() + 1}
	results, before := make([]*schema.Object, len(ops)), make([]*schema.Object, len(ops))
	for i, op := range ops {
		current := s.index.Get(op.Target())
		before[i] = current
		answer, ev, err := evaluate(op, current, store.AuthorOf(ctx), batch.Revision)
		if err != nil {
			return nil, store.AtIndex(err, i)
		}
		results[i] = answer
		if ev.Object != nil {
			batch.Events = append(batch.Events, ev)
		}
	}
	store.SetReplaced(ctx, before)
	if len(batch.Events) == 0 {
		return results, nil
	}
	for _, ev := range batch.Events {
		s.index.Apply(ev)
	}
	s.noteLocked(ctx, batch)
	s.log.Append(batch)
	return results, nil
}

// evaluate returns the answer of an operation and its event. The event has no object if
// nothing changes.
func evaluate(op store.Op, current *schema.Object, by store.Author, revision int64) (*schema.Object, store.Event, error) {
	out, err := op.Evaluate(current, by)
	if err != nil || current != nil && out.Stored == current {
		return current, store.Event{}, err
	}
	answer := out.Answer.AtRevision(revision)
	ev := store.Event{Type: store.Modified, Object: answer, Previous: current}
	switch {
	case current == nil:
		ev.Type = store.Added
	case out.Stored == nil:
		ev.Type = store.Deleted
		ev.Object = current.AtRevision(revision)
	}
	return answer, ev, nil
}
