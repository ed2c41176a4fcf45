package fleet

import (
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/discovery/stream"
)

// ForgetPast releases the past views of proxies that poll. A stream releases its own soon
// after the proxy connects.
func (f *Fleet) ForgetPast() {
	f.mu.RLock()
	all := slices.Collect(maps.Values(f.clients))
	f.mu.RUnlock()
	for _, c := range all {
		c.Transition.ForgetPast()
	}
}

// ForgetReplaced releases the replaced views of proxies that have not polled since a
// revision, and ends streams whose proxies have not answered since then.
func (f *Fleet) ForgetReplaced(by int64) {
	f.mu.RLock()
	all := slices.Collect(maps.Values(f.clients))
	var streams []*stream.Stream
	for _, c := range all {
		streams = append(append(streams, c.streams...), c.secrets.open...)
	}
	f.mu.RUnlock()
	for _, c := range all {
		c.Transition.ForgetReplaced(by)
	}
	for _, st := range streams {
		st.EndUnanswered(by)
	}
}
