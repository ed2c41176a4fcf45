package discovery

import (
	"errors"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/history"
)

// A proxy that polls several replicas in turn may have been told by another one what this
// one is still to hear of. What it has then is of no view that is known here, as may be
// what it was told long ago. As long as this replica cannot tell which, it changes
// nothing: the version that the proxy has is the whole answer. It is known as soon as all
// that was stored before the poll is published here (Publisher.isCaughtUp).

// stranger is a version that is of no view known here, of one type or route table.
type stranger struct {
	version string
	since   time.Time
	old     bool // all that is newer is known
}

const (
	// maxStrangers bounds those of one proxy, as names are the client's to choose.
	maxStrangers = 64
	// strangerFor is how long one is waited for: by then no replica tells it any more
	// that is not cut off.
	strangerFor = history.PastFor
)

// isStrange reports whether the version that a proxy has of a type or table may be newer
// than all that is known here.
func (h *handover) isStrange(p poll, name string, last *passing, now time.Time, is func(*compiled.View) bool) bool {
	known, again := h.strangers[name]
	again = again && known.version == p.version
	told := p.version == "" || p.version == last.told || p.version == last.has
	if !again && told || slices.ContainsFunc(h.held, is) {
		delete(h.strangers, name)
		return false
	}
	if !again {
		known = stranger{version: p.version, since: now}
	}
	if h.strangers == nil || len(h.strangers) >= maxStrangers {
		h.strangers = map[string]stranger{}
	}
	waits := h.waitsFor(known, p, now)
	if !waits && !known.old {
		// What was told meanwhile by others is among the past by now.
		known.old = true
		h.leave()
		h.begin(p, now, is)
	}
	h.strangers[name] = known
	return waits
}

func (h *handover) waitsFor(s stranger, p poll, now time.Time) bool {
	return !s.old && now.Sub(s.since) < strangerFor && !p.isCaughtUp(s.since)
}

// isAhead reports whether the proxy may have something that is newer than all that is
// known here.
func (h *handover) isAhead(p poll) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.isAheadLocked(p, time.Now())
}

func (h *handover) isAheadLocked(p poll, now time.Time) bool {
	for _, s := range h.strangers {
		if h.waitsFor(s, p, now) {
			return true
		}
	}
	return false
}

// errBehind: what a proxy asks for is not known here, and it may be that another replica
// has told it of that.
var errBehind = errors.New("another replica may have told the proxy of what is still to be heard of here")

// lacksTable reports whether a proxy asks for a route table that is still to be heard of
// here, or that would be told before what it leads to.
func (h *handover) lacksTable(p poll, name string, target *compiled.View, now time.Time) bool {
	return p.version == "" && (h.isAheadLocked(p, now) || name != "" && !target.HasTable(name) && !p.isCaughtUp(now.Add(-catchUpAge)))
}

// lacksEndpoints reports whether a proxy asks for endpoints that are still to be heard of
// here.
func (p *proxyState) lacksEndpoints(g *compiled.Generation, version string, names []string) bool {
	unknown := func(name string) bool {
		return len(g.Endpoints.Members(name)) == 0 && !slices.Contains(compiled.EndpointKeys(p.view.Config.Clusters), name)
	}
	return p.handover.isAhead(p.poll(g, version)) ||
		slices.ContainsFunc(names, unknown) && !p.publisher.isCaughtUp(time.Now().Add(-catchUpAge))
}
