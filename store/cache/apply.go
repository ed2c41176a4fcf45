package cache

import (
	"fmt"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// apply applies one batch, revision by revision. If a revision does not follow from the
// copy, the error is errMissed and the copy stays at the revision before it.
func (c *Cache) apply(b store.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.Statuses != nil {
		return c.applyStatusesLocked(b)
	}
	for one := range b.Revisions() {
		events, err := c.checkLocked(one)
		if err != nil {
			return err
		}
		for _, ev := range events {
			c.index.Apply(ev)
		}
		c.good.keep(events, b.Readings)
		c.changes.Append(store.Batch{Revision: one.Revision, Events: events})
		c.tellChangeLocked() // Inside the loop, so it also covers revisions before a missed one.
	}
	c.changes.Append(store.Batch{Revision: b.Revision})
	c.readLocked(b.Readings)
	c.syncLocked()
	return nil
}

// readLocked records values that became unreadable or readable again.
func (c *Cache) readLocked(readings []store.Reading) {
	news := false
	for _, r := range readings {
		news = c.unreadable.Apply(r) || news
	}
	c.dropMendedLocked()
	if news {
		c.tellChangeLocked()
	}
}

// checkLocked returns the changes of one revision with their previous states. The cache
// knows those states even if the source does not send them.
func (c *Cache) checkLocked(one store.Batch) ([]store.Event, error) {
	if known := c.changes.Revision(); one.Revision <= known {
		return nil, fmt.Errorf("%w: changes of revision %d came after revision %d", errMissed, one.Revision, known)
	}
	events := make([]store.Event, 0, len(one.Events))
	for _, ev := range one.Events {
		current := c.index.Get(ev.Object.Key())
		if !follows(ev, current) {
			return nil, fmt.Errorf("%w: revision %d: %s %s follows %s, the copy has %s",
				errMissed, one.Revision, ev.Type, ev.Object.Key(), versionOf(ev.Previous), versionOf(current))
		}
		ev.Previous = current
		events = append(events, ev)
	}
	return events, nil
}

// follows reports whether an event can have happened to the current object, which is
// nil if there is none. Not every source sends the previous state.
func follows(ev store.Event, current *schema.Object) bool {
	if ev.Type == store.Added {
		return current == nil
	}
	return current != nil && (ev.Previous == nil || ev.Previous.Revision() == current.WithoutStatus().Revision())
}

func versionOf(o *schema.Object) string {
	if o == nil {
		return "no object"
	}
	return "resourceVersion " + o.WithoutStatus().Meta.ResourceVersion
}

// replace makes a list the copy, with the statuses that the store keeps. at has the changes
// of the list's revision. The copy is complete once it has reached the revision complete.
func (c *Cache) replace(list *store.List, statuses statusList, at store.Batch, complete int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	differs := !sameVersions(c.index.List(store.Scope{}), list.Items)
	c.keepListedLocked(list.Unreadable)
	c.index = store.Index{}
	for _, obj := range list.Items {
		c.index.Put(obj)
	}
	at = c.showLocked(statuses, at)
	c.unreadable = store.NewUnreadableSet(list.Unreadable)
	if c.HasSynced() {
		c.reportLostLocked()
		c.relisted = max(c.relisted, c.changes.Revision())
	}
	c.changes.Reset(at)
	c.syncAt = complete
	if differs {
		c.tellChangeLocked()
	}
	c.syncLocked()
}

// syncLocked records that the copy is complete for the first time. This counts as a
// change even if the store is empty.
func (c *Cache) syncLocked() {
	if !c.HasSynced() && c.changes.Revision() >= c.syncAt {
		close(c.synced)
		c.reportLostLocked()
		c.tellChangeLocked()
	}
}

func (c *Cache) tellChangeLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func sameVersions(a, b []*schema.Object) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameVersion(a[i], b[i]) {
			return false
		}
	}
	return true
}

// sameVersion reports whether two objects are of one write, whatever their statuses. It
// compares uids too, because a store restored from a copy may assign a resourceVersion
// twice.
func sameVersion(a, b *schema.Object) bool {
	a, b = a.WithoutStatus(), b.WithoutStatus()
	return a.Key() == b.Key() && a.Meta.UID == b.Meta.UID && a.Meta.ResourceVersion == b.Meta.ResourceVersion
}
