package cache

import (
	"context"
	"fmt"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// If the source keeps statuses, the objects of the copy have them, with the versions that
// status revisions gave. Readers and watches of the cache see those. Proxies and handlers
// follow the objects as they were written: Snapshot, Since, Changed, Peek and Handle know
// no statuses.

// ShowsStatuses implements store.StatusReader.
func (c *Cache) ShowsStatuses() bool { return c.statuses.Load() }

// Reached implements store.StatusReader.
func (c *Cache) Reached() int64 { return c.changes.Revision() }

// statusList are the statuses that the source keeps at one revision.
type statusList struct {
	kept bool
	of   map[schema.Key]store.StoredStatus
}

// statusesAt returns the statuses at a revision. A source that is no StatusKeeper has none.
func (c *Cache) statusesAt(ctx context.Context, revision int64) (statusList, error) {
	source, ok := c.source.(store.StatusKeeper)
	if !ok {
		return statusList{}, nil
	}
	kept, all, err := source.Statuses(ctx, revision)
	if err != nil {
		return statusList{}, err
	}
	list := statusList{kept, make(map[schema.Key]store.StoredStatus, len(all))}
	for _, one := range all {
		list.of[one.Key] = one
	}
	return list, nil
}

// show replaces objects by those with their statuses.
func (l statusList) show(objs []*schema.Object) {
	if !l.kept {
		return
	}
	for i, o := range objs {
		if with := l.of[o.Key()].For(o); with != nil {
			objs[i] = with
		}
	}
}

// showLocked gives the objects of the index their statuses. It returns at with the events
// of a status revision.
func (c *Cache) showLocked(statuses statusList, at store.Batch) store.Batch {
	c.statuses.Store(statuses.kept)
	if !statuses.kept {
		at.Statuses = nil
		return at
	}
	for key, one := range statuses.of {
		if with := one.For(c.index.Get(key)); with != nil {
			c.index.Put(with)
		}
	}
	if at.Statuses != nil {
		for _, one := range at.Statuses.Moved {
			if o := c.index.Get(one.Key); o != nil && o.Revision() == one.Revision {
				at.Events = append(at.Events, store.Event{Type: store.Modified, Object: o})
			}
		}
		at.Statuses = nil
	}
	return at
}

// applyStatusesLocked applies a status revision. A status about another state of its object
// than the present one counts nowhere. If the source begins or ends to keep statuses, all
// versions may be others, so watches end and their clients list again.
func (c *Cache) applyStatusesLocked(b store.Batch) error {
	if known := c.changes.Revision(); b.Revision <= known {
		return fmt.Errorf("%w: statuses of revision %d came after revision %d", errMissed, b.Revision, known)
	}
	if b.Statuses.Kept != c.statuses.Load() {
		c.switchLocked(b)
	} else {
		c.changes.Append(store.Batch{Revision: b.Revision, Events: c.moveLocked(b.Statuses.Moved)})
	}
	c.syncLocked()
	return nil
}

// moveLocked gives objects new statuses, and returns the events.
func (c *Cache) moveLocked(moved []store.StoredStatus) []store.Event {
	events := make([]store.Event, 0, len(moved))
	for _, one := range moved {
		before := c.index.Get(one.Key)
		if with := one.For(before); with != nil {
			c.index.Put(with)
			events = append(events, store.Event{Type: store.Modified, Object: with, Previous: before})
		}
	}
	return events
}

func (c *Cache) switchLocked(b store.Batch) {
	c.statuses.Store(b.Statuses.Kept)
	c.log.Info("the store keeps statuses of objects (--status-revisions)", "kept", b.Statuses.Kept, "revision", b.Revision)
	if !b.Statuses.Kept {
		for _, o := range c.index.List(store.Scope{}) {
			if plain := o.WithoutStatus(); plain != o {
				c.index.Put(plain)
			}
		}
	}
	c.changes.Reset(store.Batch{Revision: b.Revision, Events: c.moveLocked(b.Statuses.Moved)})
}

// withoutStatuses replaces objects by those without their statuses.
func withoutStatuses(objs []*schema.Object) []*schema.Object {
	for i, o := range objs {
		objs[i] = o.WithoutStatus()
	}
	return objs
}
