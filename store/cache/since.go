package cache

import (
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Since returns the changes between a revision that Snapshot or Since returned and the
// present one: each object once, in the order of its first change. ok is false if they
// are unknown: before HasSynced, if the changes are no longer kept, and if a full list
// or the repair of a damaged value came in between. Use Snapshot then.
func (c *Cache) Since(revision int64) (changes []schema.Change, present int64, ok bool) {
	if !c.HasSynced() {
		return nil, 0, false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	present = c.changes.Revision()
	if revision <= c.relisted || revision < c.good.since || revision > present {
		return nil, 0, false
	}
	batches, err := c.changes.Since(revision)
	if err != nil {
		return nil, 0, false
	}
	return netChanges(batches, c.good.objects), present, true
}

// netChanges leaves out objects that came and went, and statuses. It uses the last good states of
// values that cannot be read.
func netChanges(batches []store.Batch, good map[schema.Key]*schema.Object) []schema.Change {
	var all []schema.Change
	at := map[schema.Key]int{}
	for _, b := range batches {
		for _, ev := range b.Events {
			after := ev.Object.WithoutStatus()
			if ev.Type == store.Deleted {
				after = nil
			}
			key := ev.Object.Key()
			if i, known := at[key]; known {
				all[i].After = after
				continue
			}
			at[key] = len(all)
			all = append(all, schema.Change{Before: ev.Previous.WithoutStatus(), After: after})
		}
	}
	net := all[:0]
	for key, i := range at {
		if last := good[key]; last != nil && all[i].After == nil {
			all[i].After = last
		}
	}
	for _, c := range all {
		if c.Before != c.After {
			net = append(net, c)
		}
	}
	return net
}
