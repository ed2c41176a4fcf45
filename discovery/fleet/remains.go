package fleet

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/stream"
)

// maxRemains bounds the proxies for which the fleet keeps what remains of their last stream.
// Each keeps the view in memory that it acked last.
const maxRemains = 256

// keptRemains is what remains of the last stream of a proxy, with the timer that ends it.
type keptRemains struct {
	*stream.Remains
	end *time.Timer
}

// Keep keeps what remains of a stream of the proxy for ReturnTime, in place of what was kept
// of an earlier one.
func (f *Fleet) Keep(c *Client, r *stream.Remains) {
	if r == nil {
		return
	}
	kept := &keptRemains{Remains: r}
	kept.end = time.AfterFunc(ReturnTime, func() {
		if c.remains.CompareAndSwap(kept, nil) {
			f.remains.Add(-1)
		}
	})
	if f.remains.Add(1) > maxRemains && c.remains.Load() == nil {
		f.remains.Add(-1)
		kept.end.Stop()
		return
	}
	if before := c.remains.Swap(kept); before != nil {
		before.end.Stop()
		f.remains.Add(-1)
	}
}

// Remains returns what remains of the last stream of the proxy, also if that stream is broken
// without a sign of it. It returns nil if there is nothing.
func (f *Fleet) Remains(c *Client, of *stream.Stream) *stream.Remains {
	f.mu.RLock()
	streams := slices.Clone(c.streams)
	f.mu.RUnlock()
	for _, st := range slices.Backward(streams) {
		if st == of {
			continue
		}
		if r := st.Remains(); r != nil {
			return r
		}
	}
	if kept := c.remains.Load(); kept != nil {
		return kept.Remains
	}
	return nil
}
