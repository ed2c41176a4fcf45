package poll

import (
	"errors"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
)

// A proxy that polls several replicas in turn may have a version from another replica that
// this one has not published yet. No view known here has that version, so it may just as
// well be very old. While this replica cannot tell, it changes nothing: its answer has the
// version of the proxy and no content. It can tell as soon as it has published everything
// that was stored before the poll (Request.IsCaughtUp).

// unknownVersion is a version of one type or route table that no view known here has.
type unknownVersion struct {
	version string
	since   time.Time
	old     bool // everything newer is known here, so it is old
}

const (
	// maxUnknownVersions bounds the versions of one proxy, because clients choose the
	// names.
	maxUnknownVersions = 64
	// unknownFor is how long a proxy keeps an unknown version: after that no replica sends
	// it any more, unless the replica is cut off.
	unknownFor = pastviews.PastFor
	// CatchUpAge is how recently this replica must have had everything before it answers
	// that a name does not exist.
	CatchUpAge = time.Second
)

// isUnknown reports whether the version that a proxy has of a type or table may be newer
// than everything known here.
func (t *Transition) isUnknown(p Request, name string, last *passing, now time.Time, is func(*compiled.View) bool) bool {
	known, again := t.unknownVersions[name]
	again = again && known.version == p.Version
	wasSent := p.Version == "" || p.Version == last.sent || p.Version == last.acked
	if !again && wasSent || slices.ContainsFunc(t.held, is) {
		delete(t.unknownVersions, name)
		return false
	}
	if !again {
		known = unknownVersion{version: p.Version, since: now}
	}
	if t.unknownVersions == nil || len(t.unknownVersions) >= maxUnknownVersions {
		t.unknownVersions = map[string]unknownVersion{}
	}
	waits := t.waitsFor(known, p, now)
	if !waits && !known.old {
		// By now the past views have what other replicas sent in between.
		known.old, t.roams = true, true
		t.reset()
		t.begin(p, now, is)
	}
	t.unknownVersions[name] = known
	return waits
}

func (t *Transition) waitsFor(s unknownVersion, p Request, now time.Time) bool {
	return !s.old && now.Sub(s.since) < unknownFor && !p.IsCaughtUp(s.since)
}

// IsAhead reports whether the proxy may have newer configuration than this replica.
func (t *Transition) IsAhead(p Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isAheadLocked(p, time.Now())
}

func (t *Transition) isAheadLocked(p Request, now time.Time) bool {
	for _, s := range t.unknownVersions {
		if t.waitsFor(s, p, now) {
			return true
		}
	}
	return false
}

// ErrBehind means that a proxy asks for a name that this replica does not know, and that
// another replica may have sent.
var ErrBehind = errors.New("another replica may have sent the proxy what is not known here yet")

// lacksTable reports whether a route table that a proxy asks for may still arrive here, or
// would be sent before its clusters.
func (t *Transition) lacksTable(p Request, name string, target *compiled.View, now time.Time) bool {
	return p.Version == "" && (t.isAheadLocked(p, now) || name != "" && !target.HasTable(name) && !p.IsCaughtUp(now.Add(-CatchUpAge)))
}
