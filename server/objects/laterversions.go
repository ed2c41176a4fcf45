package objects

import (
	"context"
	"errors"
	"slices"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// laterVersions is a store for clients that know objects with their statuses, and so with
// later versions than those of their writes. A condition on a resourceVersion holds for
// every version since the write of the stored object, because a status is no write. An
// object that a write leaves as it is keeps the version that reads show.
type laterVersions struct {
	store.Interface
	store.Verbs
	reads store.Reader
	view  store.StatusReader
}

func withStatuses(writes store.Interface, reads store.Reader, view store.StatusReader) store.Interface {
	s := &laterVersions{Interface: writes, reads: reads, view: view}
	s.Verbs = store.VerbsOf(s.Txn)
	return s
}

// Create implements store.Interface.
func (s *laterVersions) Create(ctx context.Context, o *schema.Object) (*schema.Object, error) {
	return s.Interface.Create(ctx, o)
}

// Update implements store.Interface.
func (s *laterVersions) Update(ctx context.Context, o *schema.Object) (*schema.Object, error) {
	return s.Verbs.Update(ctx, o)
}

// UpdateFunc implements store.Interface.
func (s *laterVersions) UpdateFunc(ctx context.Context, key schema.Key, change store.Change) (*schema.Object, error) {
	return s.Verbs.UpdateFunc(ctx, key, change)
}

// Delete implements store.Interface.
func (s *laterVersions) Delete(ctx context.Context, key schema.Key, pre store.Preconditions) (*schema.Object, error) {
	return s.Verbs.Delete(ctx, key, pre)
}

// HistoryAtHand implements store.HistorianAtHand.
func (s *laterVersions) HistoryAtHand(ctx context.Context, key schema.Key) ([]store.Version, error) {
	return store.HistoryAtHand(ctx, s.Interface, key)
}

// Txn implements store.Interface. Another replica may have given out versions that this one
// has not reached yet. So a write that fails for a condition is tried again with the newest
// revision of the store.
func (s *laterVersions) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	reached := s.view.Reached()
	done, err := s.Interface.Txn(ctx, until(ops, reached))
	if errors.Is(err, store.ErrConflict) {
		newest, unknown := s.reads.Revision(ctx)
		if unknown != nil || newest <= reached {
			return nil, err
		}
		done, err = s.Interface.Txn(ctx, until(ops, newest))
	}
	if err != nil {
		return nil, err
	}
	for i, o := range done {
		if o.Revision() <= reached {
			done[i] = s.shown(ctx, o)
		}
	}
	return done, nil
}

func until(ops []store.Op, revision int64) []store.Op {
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].Until = revision
	}
	return ops
}

// shown returns an object that was not written, perhaps as a dry run would change it, with
// the version and the status that reads show.
func (s *laterVersions) shown(ctx context.Context, o *schema.Object) *schema.Object {
	read, err := s.reads.Get(ctx, o.Key(), store.ReadOptions{})
	if err != nil || read.StatusText() == nil || read.WithoutStatus().Revision() != o.Revision() {
		return o
	}
	if read.IsEncodedAs(o.Encoded()) {
		return read
	}
	return o.AtRevision(read.Revision())
}
