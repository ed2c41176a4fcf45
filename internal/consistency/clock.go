package consistency

import (
	"math"
	"slices"
	"sort"
	"time"
)

// clock relates revisions to time. The store has one order for all objects, so everything
// that any client received bounds what all clients may receive later.
type clock struct {
	told  []moment // By time, with growing revisions: what was known when.
	begun []moment // By time: from here on writes get at least this revision.
}

type moment struct {
	at       time.Duration
	revision int64
}

func newClock(h *History) *clock {
	c := &clock{}
	for i := range h.Operations {
		op := &h.Operations[i]
		if op.Outcome != OK || op.Revision == 0 {
			continue
		}
		c.told = append(c.told, moment{op.Return, op.Revision})
		if op.Verb.writes() {
			c.begun = append(c.begun, moment{op.Call, op.Revision})
		}
	}
	for _, w := range h.Watches {
		for _, f := range w.Frames {
			if f.Type != Began && f.Type != Broken && f.Type != Expired {
				c.told = append(c.told, moment{f.At, f.Revision})
			}
		}
	}
	byTime := func(a, b moment) int { return int(a.at - b.at) }
	slices.SortFunc(c.told, byTime)
	slices.SortFunc(c.begun, byTime)
	for i := 1; i < len(c.told); i++ {
		c.told[i].revision = max(c.told[i].revision, c.told[i-1].revision)
	}
	for i := len(c.begun) - 2; i >= 0; i-- {
		c.begun[i].revision = min(c.begun[i].revision, c.begun[i+1].revision)
	}
	return c
}

// floor returns the oldest possible revision of the store at a time: some client had
// already received it.
func (c *clock) floor(at time.Duration) int64 {
	i := sort.Search(len(c.told), func(i int) bool { return c.told[i].at >= at })
	if i == 0 {
		return 0
	}
	return c.told[i-1].revision
}

// toldOf returns when a client had received a revision or a later one.
func (c *clock) toldOf(revision int64) time.Duration {
	i := sort.Search(len(c.told), func(i int) bool { return c.told[i].revision >= revision })
	if i == len(c.told) {
		return math.MaxInt64
	}
	return c.told[i].at
}

// ceiling returns the newest possible revision of the store at a time: the next one is of
// a write that had not begun.
func (c *clock) ceiling(at time.Duration) int64 {
	i := sort.Search(len(c.begun), func(i int) bool { return c.begun[i].at > at })
	if i == len(c.begun) {
		return math.MaxInt64
	}
	return c.begun[i].revision - 1
}
