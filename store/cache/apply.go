package cache

import (
	"fmt"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// apply brings in one batch, revision by revision. One that does not follow from
// what is known is errMissed; the view then stays at the revision before it.
func (c *Cache) apply(b store.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
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
		c.tellChangeLocked() // Also of what came before one that is missed.
	}
	c.changes.Append(store.Batch{Revision: b.Revision})
	c.readLocked(b.Readings)
	c.syncLocked()
	return nil
}

// readLocked takes note of values that cannot be read, or can be again.
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

// checkLocked is the changes of one revision, with the states before them: those
// are known here even if the source does not say.
func (c *Cache) checkLocked(one store.Batch) ([]store.Event, error) {
	if known := c.changes.Revision(); one.Revision <= known {
		return nil, fmt.Errorf("%w: changes of revision %d came after revision %d", errMissed, one.Revision, known)
	}
	events := make([]store.Event, 0, len(one.Events))
	for _, ev := range one.Events {
		current := c.index.Get(ev.Object.Key())
		if !follows(ev, current) {
			return nil, fmt.Errorf("%w: revision %d: %s %s follows %s, the view has %s",
				errMissed, one.Revision, ev.Type, ev.Object.Key(), versionOf(ev.Previous), versionOf(current))
		}
		ev.Previous = current
		events = append(events, ev)
	}
	return events, nil
}

// follows reports whether an event can have happened to the current object, nil
// for none. Not every source tells the state before.
func follows(ev store.Event, current *schema.Object) bool {
	if ev.Type == store.Added {
		return current == nil
	}
	return current != nil && (ev.Previous == nil || ev.Previous.Revision() == current.Revision())
}

func versionOf(o *schema.Object) string {
	if o == nil {
		return "no object"
	}
	return "resourceVersion " + o.Meta.ResourceVersion
}

// replace makes a list, the revision of which changed what at says, the view; it is
// complete when it has come to a revision.
func (c *Cache) replace(list *store.List, at store.Batch, complete int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	differs := !sameVersions(c.index.List(store.Scope{}), list.Items)
	c.keepListedLocked(list.Unreadable)
	c.index = store.Index{}
	for _, obj := range list.Items {
		c.index.Put(obj)
	}
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

// syncLocked notes that the view is complete for the first time. From "not
// known" to "nothing there" is a change too.
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

// sameVersion compares by uid too: a store that was restored from a copy may
// give a resourceVersion twice.
func sameVersion(a, b *schema.Object) bool {
	return a.Key() == b.Key() && a.Meta.UID == b.Meta.UID && a.Meta.ResourceVersion == b.Meta.ResourceVersion
}
