package fleet

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/stream"
)

// maxRemains bounds the proxies of which it is kept what remains of their last stream. Each
// keeps the view in memory that it acked last.
const maxRemains = 256

// Keep keeps what remains of a stream of the proxy for ReturnTime.
func (f *Fleet) Keep(c *Client, r *stream.Remains) {
	if r == nil {
		return
	}
	if f.remains.Add(1) > maxRemains {
		f.remains.Add(-1)
		return
	}
	c.remains.Store(r)
	time.AfterFunc(ReturnTime, func() {
		c.remains.CompareAndSwap(r, nil)
		f.remains.Add(-1)
	})
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
	return c.remains.Load()
}
