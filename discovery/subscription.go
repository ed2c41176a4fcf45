package discovery

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// subscription is a route table that a proxy polls, or its listeners.
type subscription struct {
	polled time.Time
	missed int // polls for clusters since then
	// version that the last poll carried; "" when the proxy has nothing.
	version string
	// has is the view that the last poll's version is of; nil when that is of
	// none that is held.
	has *compiled.View
	// told is the view that the last answer was of. The proxy is at one of the
	// two, or if has is nil, at what nobody here knows.
	told  *compiled.View
	moved time.Time // when has last changed

	passing passing
}

// follow takes over what the next poll told.
func (s *subscription) follow(next subscription) {
	if s.has != next.has {
		s.moved = next.polled
	}
	s.polled, s.missed = next.polled, 0
	s.version, s.has, s.told = next.version, next.has, next.told
}

func (s *subscription) replace(target, next *compiled.View) {
	if s.has == target {
		s.has = next
	}
	if s.told == target {
		s.told, s.passing.behind = next, true
	}
}

// at reports whether the proxy may route by the view.
func (s *subscription) at(v *compiled.View) bool {
	return s.has == v || s.told == v || s.has == nil && s.version != ""
}

// silent reports whether the proxy has stopped to poll: the listener is gone that
// took its routes from here. It still polls clusters, or nothing is known.
func (s *subscription) silent(now time.Time, patience time.Duration) bool {
	return s.missed > 2 && now.Sub(s.polled) > patience
}

// passing counts the polls of a proxy that passes over what it is answered.
type passing struct {
	has, told string // versions
	times     int
	behind    bool // there is something newer than the last poll was answered
}

// passedOver is how often the same answer must be passed over to be a refusal.
// Once is a poll that was under way, twice a lost answer.
const passedOver = 3

// note takes a poll and its answer. Who carries no version, as a person with
// curl, passes over nothing.
func (p *passing) note(has, told string) {
	if has == told || has == "" {
		*p = passing{has: has, told: told}
		return
	}
	if told != p.told {
		p.times = 0
	}
	p.has, p.told, p.times, p.behind = has, told, p.times+1, false
}

// refused reports whether the proxy keeps another version than it is answered.
func (p *passing) refused() bool { return p.times > passedOver }

// judge is for those who count proxies and do not want to wait for any.
func (h *handover) judge() {
	refuses := h.clusters.refused()
	for _, s := range h.routed {
		refuses = refuses || s.passing.refused()
	}
	if refuses != h.refuses && h.refusing != nil {
		h.refusing(refuses)
	}
	h.refuses = refuses
}

// refusals say what the proxy keeps instead of what it is answered.
func (h *handover) refusals() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	say := func(what string, p *passing) {
		if p.refused() {
			out = append(out, fmt.Sprintf("%s of version %s instead of %s", what, p.has, p.told))
		}
	}
	say("clusters", &h.clusters)
	for _, name := range slices.Sorted(maps.Keys(h.routed)) {
		what := "route table " + name
		if name == xds.ListenerType {
			what = "listeners"
		}
		say(what, &h.routed[name].passing)
	}
	return out
}
