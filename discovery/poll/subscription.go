package poll

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// subscription is a route table that a proxy polls for, or its listeners.
type subscription struct {
	polled time.Time
	missed int // polls for clusters since then
	// version is the one that the last poll carried, "" if the proxy has nothing.
	version string
	// acked is the held view that has the version of the last poll, nil if none has.
	acked *compiled.View
	// sent is the view of the last answer. The proxy is at one of the two views or, if
	// acked is nil, at a view that is not known here.
	sent  *compiled.View
	moved time.Time // when acked last changed

	passing passing
}

// follow records the next poll.
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

// silent reports whether the proxy no longer polls for the table, because the listener that
// used it is gone. If the proxy does not poll for clusters either, that is not known.
func (s *subscription) silent(now time.Time, patience time.Duration) bool {
	return s.missed > 2 && now.Sub(s.polled) > patience
}

// passing counts the polls in which a proxy ignores the last answer.
type passing struct {
	acked, sent string // versions
	times       int
	behind      bool // there is something newer than the last answer
}

// passedOver is how often a proxy may ignore the same answer before that counts as a
// refusal. The first poll may have been under way, and the second answer may have been
// lost.
const passedOver = 3

// note records a poll and its answer. A poll without a version, such as that of a person
// with curl, ignores nothing.
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

// refused reports whether the proxy keeps another version than that of its answers.
func (p *passing) refused() bool { return p.times > passedOver }

// noteRefusing reports to Refusing when the proxy begins or ceases to refuse something.
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

// Refusals returns sentences that name the version which the proxy keeps instead of the
// answered one.
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
