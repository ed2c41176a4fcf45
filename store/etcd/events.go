package etcd

import (
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// batches converts one answer of etcd to at most one batch, or to several if there are
// status revisions, which are batches of their own.
func (w *watcher) batches(answer clientv3.WatchResponse) (all []store.Batch, err error) {
	if err := answer.Err(); err != nil {
		return nil, translate("watch", err, schema.Key{})
	}
	for rest := answer.Events; len(rest) > 0; {
		n := 0
		for n < len(rest) && string(rest[n].Kv.Key) != w.store.keys.statuses {
			n++
		}
		if n == len(rest) {
			batch, err := w.batch(rest)
			return w.add(all, batch), err
		}
		// All events of the revision of the status belong to it.
		at := rest[n]
		before, after := n, n+1
		for before > 0 && rest[before-1].Kv.ModRevision == at.Kv.ModRevision {
			before--
		}
		for after < len(rest) && rest[after].Kv.ModRevision == at.Kv.ModRevision {
			after++
		}
		batch, err := w.batch(rest[:before])
		if err != nil {
			return nil, err
		}
		all = append(w.add(all, batch), w.statusBatch(at))
		rest = rest[after:]
	}
	return all, nil
}

// add appends a batch unless it has no revision.
func (w *watcher) add(all []store.Batch, batch store.Batch) []store.Batch {
	if batch.Revision == 0 {
		return all
	}
	return append(all, batch)
}

// batch converts events without status revisions. Its revision is 0 if there is none of
// the store.
func (w *watcher) batch(events []*clientv3.Event) (store.Batch, error) {
	var batch store.Batch
	var ticked, changed int64
	for _, ev := range events {
		switch key := string(ev.Kv.Key); {
		case key == w.store.keys.head:
			batch.Revision, ticked = ev.Kv.ModRevision, ev.Kv.ModRevision
			continue
		case !strings.HasPrefix(key, w.store.keys.objects):
			continue // A key of another program: no revision of the store.
		}
		batch.Revision, changed = ev.Kv.ModRevision, ev.Kv.ModRevision
		change, reading, err := w.event(ev)
		if err != nil {
			return store.Batch{}, err
		}
		if change.Object != nil && w.scope.Contains(change.Object.Key()) {
			batch.Events = append(batch.Events, change)
		}
		if reading != nil && inScope(reading.Unreadable, w.scope) {
			batch.Readings = append(batch.Readings, *reading)
		}
	}
	if changed > ticked {
		w.noteForeign(changed)
	}
	return batch, nil
}

// event returns one change as readers see it; for readers an unreadable value is no
// object. change has no object if nothing changed for readers. reading is set if the
// value before or after the change cannot be read.
func (w *watcher) event(ev *clientv3.Event) (change store.Event, reading *store.Reading, err error) {
	now, why := w.after(ev)
	before := w.before(ev, now)
	switch {
	case why != nil:
		reading = &store.Reading{Unreadable: w.store.keys.unreadable(ev.Kv, why)}
	case before == nil && !ev.IsCreate():
		reading = &store.Reading{Unreadable: w.store.keys.unreadable(ev.Kv, errMended), Mended: true}
	}
	change, err = w.change(ev, before, now)
	return change, reading, err
}

var errMended = errors.New("it could not be read before")

func (w *watcher) change(ev *clientv3.Event, before, now *schema.Object) (store.Event, error) {
	switch {
	case now != nil && (ev.IsCreate() || ev.PrevKv != nil && before == nil):
		return store.Event{Type: store.Added, Object: now}, nil
	case now != nil:
		return store.Event{Type: store.Modified, Object: now, Previous: before}, nil
	case ev.PrevKv == nil && !ev.IsCreate():
		// A deletion needs the state before it, which was compacted.
		return store.Event{}, &store.Error{Kind: store.ErrExpired, Detail: fmt.Sprintf(
			"the state before revision %d was compacted: list again", ev.Kv.ModRevision)}
	case before == nil:
		return store.Event{}, nil
	}
	return store.Event{Type: store.Deleted, Object: before.AtRevision(ev.Kv.ModRevision), Previous: before}, nil
}

// after returns the state after a change, nil if there is none. If the value cannot be
// read, it returns the error.
func (w *watcher) after(ev *clientv3.Event) (*schema.Object, error) {
	if ev.Type == clientv3.EventTypeDelete {
		return nil, nil
	}
	if obj := w.store.pendingWrites.take(ev.Kv); obj != nil {
		return obj, nil
	}
	obj, err := w.store.keys.object(ev.Kv, ev.Kv.ModRevision)
	if err != nil {
		w.log.Error("object in etcd cannot be read", "key", string(ev.Kv.Key), "revision", ev.Kv.ModRevision, "error", err)
		return nil, err
	}
	return obj, nil
}

// before returns the state before a change that led to now.
func (w *watcher) before(ev *clientv3.Event, now *schema.Object) *schema.Object {
	if ev.PrevKv == nil {
		return nil
	}
	if now != nil {
		if obj := w.store.optimistic.known(now.Key(), ev.PrevKv); obj != nil {
			return obj
		}
	}
	obj, err := w.store.keys.object(ev.PrevKv, ev.PrevKv.ModRevision)
	if err != nil {
		return nil // It was logged when it arrived.
	}
	return obj
}
