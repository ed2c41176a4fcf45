package cache

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// A value that is damaged while the server runs is no object for readers. Proxies go on
// by the object's last good state all the same: a rule that vanished might open what it
// had closed.

// lastGood are the last good states of objects whose values cannot be read now.
type lastGood struct {
	of map[schema.Key]*schema.Object
	// since is the revision at which one of them was dropped. How they went on from
	// before it, changes do not tell.
	since int64
}

// LastGood is the state of an object that proxies follow because its stored value cannot
// be read; nil if there is none.
func (c *Cache) LastGood(key schema.Key) *schema.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.good.of[key]
}

// keep takes note of the states that damaged values end.
func (g *lastGood) keep(events []store.Event, readings []store.Reading) {
	for _, ev := range events {
		if ev.Type != store.Deleted || ev.Previous == nil {
			continue
		}
		for _, r := range readings {
			if !r.Mended && r.Key == ev.Object.Key() && strconv.FormatInt(r.Revision, 10) == ev.Object.Meta.ResourceVersion {
				g.put(ev.Previous)
			}
		}
	}
}

func (g *lastGood) put(o *schema.Object) {
	if g.of == nil {
		g.of = map[schema.Key]*schema.Object{}
	}
	g.of[o.Key()] = o
}

// dropMendedLocked forgets the states whose values can be read again, or are gone.
func (c *Cache) dropMendedLocked() {
	for key := range c.good.of {
		if _, damaged := c.unreadable.Of(key); !damaged || c.index.Get(key) != nil {
			delete(c.good.of, key)
			c.good.since = c.changes.Revision()
		}
	}
}

// keepListedLocked keeps, of a list that takes the place of the view, the last good
// states of the values that it cannot read.
func (c *Cache) keepListedLocked(unreadable []store.Unreadable) {
	before := c.good
	c.good = lastGood{since: before.since}
	for _, u := range unreadable {
		known := c.index.Get(u.Key)
		if known == nil {
			known = before.of[u.Key]
		}
		if known != nil {
			c.good.put(known)
		}
	}
}

// reportLostLocked logs which values have no good state that proxies could follow.
func (c *Cache) reportLostLocked() {
	for _, u := range c.unreadable.In(store.Scope{}) {
		if c.good.of[u.Key] != nil {
			continue
		}
		c.log.LogAttrs(context.Background(), slog.LevelError, "the mesh is served without an object: its stored value cannot be read, and no good state of it is known",
			slog.String("object", u.Key.String()), slog.String("place", u.Place), slog.String("error", u.Why))
	}
}
