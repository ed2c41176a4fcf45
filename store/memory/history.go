package memory

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// KeptRecords is how many records of each object are kept.
const KeptRecords = 10

// verbs are what events of each type come from.
var verbs = map[store.EventType]store.Verb{
	store.Added: store.OpCreate, store.Modified: store.OpUpdate, store.Deleted: store.OpDelete,
}

// noteLocked keeps a record of each change.
func (s *Store) noteLocked(ctx context.Context, batch store.Batch) {
	transaction := uuid.NewString()
	for _, ev := range batch.Events {
		key := ev.Object.Key()
		records := append(s.records[key], store.Record{
			Revision: batch.Revision, Verb: verbs[ev.Type], Time: time.Now().UTC(),
			Author: store.AuthorOf(ctx), Transaction: transaction, Before: ev.Previous,
		})
		s.records[key] = slices.Clone(records[max(0, len(records)-KeptRecords):])
	}
}

// History implements store.Historian.
func (s *Store) History(_ context.Context, key schema.Key) ([]store.Version, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	versions := store.Versions(s.records[key], s.index.Get(key), reach(s.records[key]))
	if len(versions) == 0 {
		return nil, &store.Error{Kind: store.ErrNotFound, Key: key}
	}
	return versions, nil
}

// reach is how far back the records of an object tell of it.
func reach(records []store.Record) store.Reach {
	if len(records) < KeptRecords {
		return store.Reach{Oldest: 1}
	}
	return store.Reach{}
}

// Changes implements store.Historian.
func (s *Store) Changes(_ context.Context, scope store.Scope, revision int64) ([]store.Difference, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.reachedLocked(revision); err != nil {
		return nil, err
	}
	var out []store.Difference
	for key, records := range s.records {
		first := slices.IndexFunc(records, func(r store.Record) bool { return r.Revision > revision })
		if first < 0 || !scope.Contains(key) {
			continue
		}
		then, err := records[first].Then(key, revision, first > 0 || reach(records).Oldest > 0)
		if err != nil {
			return nil, err
		}
		out = append(out, store.Difference{Key: key, Then: then, Now: s.index.Get(key)})
	}
	store.SortDifferences(out)
	return out, nil
}
