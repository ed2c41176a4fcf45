package poll

import (
	"errors"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/history"
)

// A proxy that polls several replicas in turn may have a version from another replica
// that this one has not published yet. Its version is then of no view known here, and so
// may be one that it got long ago. While this replica cannot tell which, it changes
// nothing: it answers with the version that the proxy has, and no content. It knows as
// soon as it has published all that was stored before the poll (Request.IsCaughtUp).

// unknownVersion is a version of one type or route table that is of no view known here.
type unknownVersion struct {
	version string
	since   time.Time
	old     bool // all that is newer is known
}

const (
	// maxUnknownVersions bounds those of one proxy, as names are the client's to choose.
	maxUnknownVersions = 64
	// unknownFor is how long one is waited for: by then no replica sends it any more,
	// unless it is cut off.
	unknownFor = history.PastFor
	// CatchUpAge is how long ago it may be that this replica had everything for it to be
	// believed that there is nothing of a name.
	CatchUpAge = time.Second
)

// isUnknown reports whether the version that a proxy has of a type or table may be newer
// than all that is known here.
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
		// What others sent meanwhile is in the history by now.
		known.old = true
		t.reset()
		t.begin(p, now, is)
	}
	t.unknownVersions[name] = known
	return waits
}

func (t *Transition) waitsFor(s unknownVersion, p Request, now time.Time) bool {
	return !s.old && now.Sub(s.since) < unknownFor && !p.IsCaughtUp(s.since)
}

// IsAhead reports whether the proxy may have something that is newer than all that is
// known here.
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

// ErrBehind: what a proxy asks for is not known here, and it may be that another replica
// has sent it.
var ErrBehind = errors.New("another replica may have sent the proxy what is not known here yet")

// lacksTable reports whether a proxy asks for a route table that is still to be heard of
// here, or that would be sent before what it leads to.
func (t *Transition) lacksTable(p Request, name string, target *compiled.View, now time.Time) bool {
	return p.Version == "" && (t.isAheadLocked(p, now) || name != "" && !target.HasTable(name) && !p.IsCaughtUp(now.Add(-CatchUpAge)))
}
