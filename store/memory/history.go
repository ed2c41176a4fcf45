package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// KeptRecords is the number of records kept for each object.
const KeptRecords = 10

// verbs maps event types to the verbs of records.
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

// reach returns how far back the records of an object are complete.
func reach(records []store.Record) store.Reach {
	if len(records) < KeptRecords {
		return store.Reach{Oldest: 1}
	}
	return store.Reach{}
}

// Changes implements store.Historian.
func (s *Store) Changes(ctx context.Context, scope store.Scope, revision int64) ([]store.Difference, error) {
	return store.AllChanges(ctx, s, scope, revision)
}

// ChangesPage implements store.Historian.
func (s *Store) ChangesPage(_ context.Context, scope store.Scope, opts store.ChangesOptions) (page []store.Difference, more bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.reachedLocked(opts.Since); err != nil {
		return nil, false, err
	}
	size := 0
	for _, key := range s.touchedLocked(scope, opts) {
		if len(page) == opts.Limit || size >= store.MaxChangesPage {
			return page, true, nil
		}
		d, err := s.differenceLocked(key, opts.Since)
		if err != nil {
			return nil, false, err
		}
		page, size = append(page, d), size+d.Size()
	}
	return page, false, nil
}

// touchedLocked returns the changed keys in scope after the key of the options, in
// order.
func (s *Store) touchedLocked(scope store.Scope, opts store.ChangesOptions) []schema.Key {
	var keys []schema.Key
	for key, records := range s.records {
		if scope.Contains(key) && records[len(records)-1].Revision > opts.Since && compareKeys(key, opts.After) > 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b schema.Key) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func (s *Store) differenceLocked(key schema.Key, since int64) (store.Difference, error) {
	records := s.records[key]
	first := slices.IndexFunc(records, func(r store.Record) bool { return r.Revision > since })
	then, err := records[first].Then(key, since, first > 0 || reach(records).Oldest > 0)
	return store.Difference{Key: key, Then: then, Now: s.index.Get(key), Revision: records[len(records)-1].Revision}, err
}
