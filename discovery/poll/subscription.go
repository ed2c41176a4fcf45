package poll

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
	// acked is the view that the last poll's version is of; nil when that is of
	// none that is held.
	acked *compiled.View
	// sent is the view that the last answer was of. The proxy is at one of the
	// two, or if acked is nil, at a view that is not known here.
	sent  *compiled.View
	moved time.Time // when has last changed

	passing passing
}

// follow takes over what the next poll says.
func (s *subscription) follow(next subscription) {
	if s.acked != next.acked {
		s.moved = next.polled
	}
	s.polled, s.missed = next.polled, 0
	s.version, s.acked, s.sent = next.version, next.acked, next.sent
}

func (s *subscription) replace(target, next *compiled.View) {
	if s.acked == target {
		s.acked = next
	}
	if s.sent == target {
		s.sent, s.passing.behind = next, true
	}
}

// at reports whether the proxy may route by the view.
func (s *subscription) at(v *compiled.View) bool {
	return s.acked == v || s.sent == v || s.acked == nil && s.version != ""
}

// silent reports whether the proxy has stopped to poll: the listener is gone that
// took its routes from here. It still polls clusters, or nothing is known.
func (s *subscription) silent(now time.Time, patience time.Duration) bool {
	return s.missed > 2 && now.Sub(s.polled) > patience
}

// passing counts the polls of a proxy that passes over what it is answered.
type passing struct {
	acked, sent string // versions
	times       int
	behind      bool // there is something newer than the last poll was answered
}

// passedOver is how often the same answer must be passed over to be a refusal.
// Once is a poll that was under way, twice a lost answer.
const passedOver = 3

// note takes a poll and its answer. A poll without a version, as of a person with
// curl, passes over nothing.
func (p *passing) note(acked, sent string) {
	if acked == sent || acked == "" {
		*p = passing{acked: acked, sent: sent}
		return
	}
	if sent != p.sent {
		p.times = 0
	}
	p.acked, p.sent, p.times, p.behind = acked, sent, p.times+1, false
}

// refused reports whether the proxy keeps another version than it is answered.
func (p *passing) refused() bool { return p.times > passedOver }

// noteRefusing has the proxy counted among those that refuse something, or not.
func (t *Transition) noteRefusing() {
	refuses := t.clusters.refused() || t.endpoints.over.refused() || t.secrets.over.refused()
	for _, s := range t.routed {
		refuses = refuses || s.passing.refused()
	}
	if refuses != t.refuses && t.Refusing != nil {
		t.Refusing(refuses)
	}
	t.refuses = refuses
}

// Refusals say what the proxy keeps instead of what it is answered.
func (t *Transition) Refusals() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	say := func(what string, p *passing) {
		if p.refused() {
			out = append(out, fmt.Sprintf("%s of version %s instead of %s", what, p.acked, p.sent))
		}
	}
	say("clusters", &t.clusters)
	for _, name := range slices.Sorted(maps.Keys(t.routed)) {
		what := "route table " + name
		if name == xds.ListenerType {
			what = "listeners"
		}
		say(what, &t.routed[name].passing)
	}
	say("endpoints "+t.endpoints.overSubject, &t.endpoints.over)
	say("secret "+t.secrets.overSubject, &t.secrets.over)
	return out
}
