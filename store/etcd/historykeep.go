package etcd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
)

// surplus holds the etcd keys of the objects that may have more records than are kept.
// It is bounded; the next sweep finds what did not fit.
type surplus struct {
	mu   sync.Mutex
	keys map[string]bool
}

const (
	maxSurplus = 10_000
	// trimDelay collects objects, so that one transaction trims many.
	trimDelay = time.Second
	// sweepInterval is the time between checks of all records.
	sweepInterval = time.Hour
	// keptDeleted is how long the records of a deleted object are kept.
	keptDeleted = 30 * 24 * time.Hour
	// sweepPage is the number of records in one request.
	sweepPage = 1000
)

// add collects the objects that a write changed. It skips creates: a create is mostly
// an object's first record, and checking would cost as much as the create. If the
// object existed before, one record too many stays until its next change.
func (p *surplus) add(w *write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, key := range w.keys {
		if w.records[i] == nil || w.current[i] == nil || len(p.keys) >= maxSurplus {
			continue
		}
		if p.keys == nil {
			p.keys = make(map[string]bool)
		}
		p.keys[key] = true
	}
}

func (p *surplus) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var keys []string
	for key := range p.keys {
		keys = append(keys, key)
	}
	p.keys = nil
	return keys
}

// KeepHistory deletes the records beyond the kept number until ctx ends. Several
// servers may do so at the same time.
func (s *Store) KeepHistory(ctx context.Context) error {
	var swept time.Time
	var said trouble
	for {
		select {
		case <-time.After(trimDelay):
		case <-ctx.Done():
			return ctx.Err()
		}
		err := s.trim(ctx, s.surplus.take())
		if now := time.Now(); err == nil && now.Sub(swept) >= sweepInterval {
			swept = now
			err = s.sweep(ctx, now)
		}
		if ctx.Err() == nil && said.isNew(err) {
			s.log.Warn("old records of objects could not be taken away", "error", err)
		}
	}
}

// trim keeps only the newest records of some objects.
func (s *Store) trim(ctx context.Context, objects []string) error {
	if len(objects) == 0 {
		return nil
	}
	agreed, err := s.agree(ctx, false)
	if err != nil {
		return err
	}
	d := s.dropper(ctx, agreed)
	for _, name := range objects {
		resp, err := s.client.Get(ctx, s.keys.historyOf(name), clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithSerializable())
		if err != nil {
			return translate("trim the history", err, schema.Key{})
		}
		var records []stored
		for _, kv := range resp.Kvs {
			records = append(records, stored{string(kv.Key), kv.ModRevision})
		}
		s.dropSurplus(d, records)
	}
	return d.flush()
}

// dropper deletes keys in batches, on conditions. It keeps the first error.
type dropper struct {
	ctx    context.Context
	client *clientv3.Client
	on     []clientv3.Cmp
	max    int
	ops    []clientv3.Op
	err    error
}

func (s *Store) dropper(ctx context.Context, on ...clientv3.Cmp) *dropper {
	return &dropper{ctx: ctx, client: s.client, on: on, max: s.limits.Ops}
}

func (d *dropper) drop(key string) {
	d.ops = append(d.ops, clientv3.OpDelete(key))
	if len(d.ops) >= d.max {
		d.send()
	}
}

func (d *dropper) send() {
	if len(d.ops) > 0 && d.err == nil {
		resp, err := d.client.Txn(d.ctx).If(d.on...).Then(d.ops...).Commit()
		if d.err = translate("trim the history", err, schema.Key{}); err == nil && !resp.Succeeded {
			d.err = errKept
		}
	}
	d.ops = d.ops[:0]
}

func (d *dropper) flush() error {
	d.send()
	return d.err
}

// stored is a record without its content.
type stored struct {
	key      string
	revision int64
}

// oldestFirst sorts records by revision.
func oldestFirst(records []stored) {
	slices.SortFunc(records, func(a, b stored) int { return cmp.Compare(a.revision, b.revision) })
}

// dropSurplus deletes the records of one object beyond the kept number, the oldest
// first. So a process that ends meanwhile leaves no gap.
func (s *Store) dropSurplus(d *dropper, records []stored) {
	oldestFirst(records)
	for _, r := range records[:max(0, len(records)-s.limits.History)] {
		d.drop(r.key)
	}
}

// sweep checks all records, object by object. A process that ended may have left too
// many, objects may have been deleted long ago, and a server may have started to keep
// no records.
func (s *Store) sweep(ctx context.Context, now time.Time) error {
	if err := s.isOpen(ctx); err != nil {
		return err
	}
	d := s.dropper(ctx)
	if s.limits.History > 0 { // Otherwise there is no surplus: all records are dropped.
		agreed, err := s.agree(ctx, true)
		if err != nil {
			return err
		}
		d.on = append(d.on, agreed)
	}
	var gone []stored
	err := s.eachHistory(ctx, func(object string, records []stored) error {
		forgotten, err := s.isForgotten(ctx, object, records, now)
		switch {
		case err != nil:
			return err
		case forgotten, s.limits.History == 0:
			gone = append(gone, records...)
		default:
			s.dropSurplus(d, records)
		}
		return nil
	})
	if err == nil {
		err = d.flush()
	}
	if err != nil {
		return err
	}
	return s.forget(ctx, gone)
}

// forget deletes records for good, the oldest first.
func (s *Store) forget(ctx context.Context, gone []stored) error {
	if len(gone) == 0 {
		return nil
	}
	oldestFirst(gone)
	if err := s.raiseFloor(ctx, gone[len(gone)-1].revision); err != nil {
		return fmt.Errorf("note what is forgotten: %w", err)
	}
	d := s.dropper(ctx)
	for _, r := range gone {
		d.drop(r.key)
	}
	return d.flush()
}

// isForgotten reports whether an object was deleted long ago.
func (s *Store) isForgotten(ctx context.Context, object string, records []stored, now time.Time) (bool, error) {
	for _, r := range records {
		_, transaction := cutLast(r.key)
		if at, ok := began(transaction); ok && now.Sub(at) < keptDeleted {
			return false, nil
		}
	}
	resp, err := s.client.Get(ctx, object, clientv3.WithCountOnly(), clientv3.WithSerializable())
	return err == nil && resp.Count == 0, translate("trim the history", err, schema.Key{})
}

// eachHistory calls f with the key of each object and its records.
func (s *Store) eachHistory(ctx context.Context, f func(object string, records []stored) error) error {
	var records []stored
	last := ""
	done := func() error {
		if last == "" {
			return nil
		}
		return f(s.keys.objectOf(last), records)
	}
	from, end := s.keys.history, clientv3.GetPrefixRangeEnd(s.keys.history)
	for {
		resp, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(),
			clientv3.WithSerializable(), clientv3.WithLimit(sweepPage))
		if err != nil {
			return translate("trim the history", err, schema.Key{})
		}
		for _, kv := range resp.Kvs {
			prefix, _ := cutLast(string(kv.Key))
			if prefix != last {
				if err := done(); err != nil {
					return err
				}
				last, records = prefix, nil
			}
			records = append(records, stored{string(kv.Key), kv.ModRevision})
		}
		if !resp.More {
			return done()
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}

// raiseFloor records, before records are deleted, that an object with few records may
// have had more.
func (s *Store) raiseFloor(ctx context.Context, revision int64) error {
	for {
		resp, err := s.client.Get(ctx, s.keys.floor)
		if err != nil {
			return translate("trim the history", err, schema.Key{})
		}
		if floorOf(resp.Kvs) >= revision {
			return nil
		}
		known := int64(0)
		for _, kv := range resp.Kvs {
			known = kv.ModRevision
		}
		done, err := s.client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(s.keys.floor), "=", known)).
			Then(clientv3.OpPut(s.keys.floor, strconv.FormatInt(revision, 10))).Commit()
		if err != nil || done.Succeeded {
			return translate("trim the history", err, schema.Key{})
		}
	}
}

// giveWay deletes the older half of all records, in a store that needs room for the
// present state. It reports whether there were any.
func (s *Store) giveWay(ctx context.Context) (bool, error) {
	var all []stored
	err := s.eachHistory(ctx, func(_ string, records []stored) error {
		all = append(all, records...)
		return nil
	})
	if err != nil || len(all) == 0 {
		return false, err
	}
	oldestFirst(all)
	return true, s.forget(ctx, all[:(len(all)+1)/2])
}
