package fleet

import (
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/discovery/stream"
)

// ForgetPast has proxies that poll let go of the views of the past that they may be at.
// Those on streams do so soon after they have come.
func (f *Fleet) ForgetPast() {
	f.mu.RLock()
	all := slices.Collect(maps.Values(f.clients))
	f.mu.RUnlock()
	for _, c := range all {
		c.Transition.ForgetPast()
	}
}

// ForgetReplaced has proxies that have not polled since a revision let go of views that were
// replaced by then, and ends streams whose proxies have not answered since.
func (f *Fleet) ForgetReplaced(by int64) {
	f.mu.RLock()
	all := slices.Collect(maps.Values(f.clients))
	var streams []*stream.Stream
	for _, c := range all {
		streams = append(streams, c.streams...)
	}
	f.mu.RUnlock()
	for _, c := range all {
		c.Transition.ForgetReplaced(by)
	}
	for _, st := range streams {
		st.EndUnanswered(by)
	}
}
