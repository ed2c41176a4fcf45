package discovery

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/history"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// An Envoy polls clusters, listeners and each route table on timers of their
// own. Told the same news on all of them, it would hear of a route before it
// has the cluster, or lose a cluster while a route still leads there: 503 both
// times. A handover takes one proxy from one view to the next in the order
// that loses nothing: new clusters are offered beside the old ones, then
// routes and listeners change, and only then are old clusters withdrawn.
//
// Each poll carries the version that the proxy has accepted, and that alone
// says what it routes by: what it was answered may have been lost or refused.
//
// Who never polled clusters waits for nothing, and who stops polling them does
// not wait for ever: openBy bounds the first step, by the pace of the proxy's
// own polls. The second takes as long as the proxy polls for routes without
// having accepted those that leave the old clusters.
type handover struct {
	// mu is held while a view is spelled. The fleet's lock may be taken under it, and
	// so nobody who has that may wait for this one.
	mu sync.Mutex
	// held are the views that the proxy may still route by, oldest first.
	// The last one is the target.
	held []*compiled.View
	// lately has the clusters that a proxy may still route to which came with
	// versions already; nil when there are none.
	lately *compiled.View
	order  int64         // of the target
	since  time.Time     // when the handover began
	polled time.Time     // when anything last was
	gap    time.Duration // before that
	asked  time.Time     // when clusters were last polled
	pace   atomic.Int64  // a time.Duration between the last two polls for clusters, 0 before two were seen
	// A poll carried a version, and one the version that it was answered before.
	hasVersion, cameBack atomic.Bool
	offered              time.Time // when the target's clusters were first answered
	// arrival is when a proxy came that had versions already: what it routes
	// by is in none of its polls but those for routes. Zero once that is known.
	arrival time.Time
	// routed is by route table polled, listeners under their type.
	routed   map[string]*subscription
	clusters passing
	at       atomic.Pointer[compiled.View] // the last one all of which it was seen to have
	refuses  bool                          // what it is answered, of any type
	refusing func(does bool)               // is told when that changes
	// strangers are versions that it has of what is not known here, by type and table.
	strangers map[string]stranger
}

const (
	// grace is what an Envoy gets between an answer and the next step, to
	// apply it and to fetch the endpoints of new clusters.
	grace = 250 * time.Millisecond
	// lostFor is how long polls for one type may go to a replica that does not answer,
	// one after the other.
	lostFor = 10 * time.Second
	// maxHeld bounds the views of one handover: of those that no table of the
	// proxy is at, the older ones are skipped.
	maxHeld = 8
)

// openBy is how long after the beginning routes change at the latest. Envoy
// waits between one and two delays, so the next poll for clusters comes within
// twice the last wait, and one of them may go to another replica; before two were
// seen, the longest of the mesh's own is taken, for the delay between them is set
// where the proxy was started.
func (h *handover) openBy(target *compiled.View) time.Duration {
	pace := time.Duration(h.pace.Load())
	if pace == 0 {
		pace = max(target.Config.RouteDelay, target.Config.Delay)
	}
	return 4*min(pace, history.MaxPace) + grace
}

// closeBy leaves the time of another poll for routes.
func (h *handover) closeBy(target *compiled.View) time.Duration {
	return h.openBy(target) + 2*min(target.Config.RouteDelay, history.MaxPace) + grace
}

// poll is what a proxy says of itself when it asks.
type poll struct {
	version string         // that it has accepted; "" for none
	next    *compiled.View // that is published for it
	order   int64          // of what is published later is higher
	// past are views that the proxy may be at if this server does not know it, and
	// one of clusters alone that it may have, or nil. Older views than one that the
	// proxy is at are left out.
	past func(is func(*compiled.View) bool) (views []*compiled.View, lately *compiled.View)
	// isCaughtUp reports whether this server has all that was stored before a time.
	isCaughtUp func(time.Time) bool
}

// answerClusters returns the answer to a poll for clusters. compose makes it of
// the target's clusters and those that only older views have.
func (h *handover) answerClusters(p poll, compose func(target *compiled.View, beside []*compiled.View) (xds.Answer, error)) (xds.Answer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	is := func(v *compiled.View) bool {
		answer, err := compose(v, nil)
		return err == nil && answer.Version == p.version
	}
	h.welcome(p, &h.clusters, now)
	h.turn(p, now, is)
	if h.isStrange(p, xds.ClusterType, &h.clusters, now, is) {
		h.keepClusters(now)
		return xds.Answer{Version: p.version}, nil
	}
	target := h.target()
	for _, s := range h.routed {
		s.missed++
	}
	h.release(target, now)
	answer, err := compose(target, h.beside())
	if err != nil {
		return xds.Answer{}, err
	}
	if h.offered.IsZero() {
		h.offered = now
		if answer.Version == p.version {
			h.offered = h.since.Add(-grace) // It has them, and had the time.
		}
	}
	h.noteVersion(p.version, h.clusters.told)
	h.clusters.note(p.version, answer.Version)
	h.judge()
	h.ask(now)
	return answer, nil
}

// answerRoutes returns the answer to a poll for a route table, or for the
// listeners. compose makes it of a view.
func (h *handover) answerRoutes(p poll, name string, compose func(*compiled.View) (xds.Answer, error)) (xds.Answer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	var last passing
	if s := h.routed[name]; s != nil {
		last = s.passing
	}
	h.welcome(p, &last, now)
	is := func(v *compiled.View) bool {
		answer, err := compose(v)
		return err == nil && answer.Version == p.version
	}
	h.turn(p, now, is)
	if h.isStrange(p, name, &last, now, is) {
		return h.keep(p, name, now), nil
	}
	target := h.target()
	if h.lacksTable(p, name, target, now) {
		return xds.Answer{}, errBehind
	}
	has, err := h.accepted(name, p.version, compose)
	if err != nil {
		return xds.Answer{}, err
	}
	from := target
	if !h.open(target, now) {
		switch {
		case has != nil:
			from = has
		case p.version != "":
			return h.keep(p, name, now), nil
		default:
			from = h.held[0]
			if s := h.routed[name]; s != nil && slices.Contains(h.held, s.told) {
				from = s.told
			}
		}
	}
	answer, err := compose(from)
	if err == nil {
		h.note(name, subscription{polled: now, version: p.version, has: has, told: from}, answer.Version)
	}
	return answer, err
}

// keep answers a poll of a proxy that has what is not known here. It keeps that: the
// version is the whole answer.
func (h *handover) keep(p poll, name string, now time.Time) xds.Answer {
	h.note(name, subscription{polled: now, version: p.version}, p.version)
	return xds.Answer{Version: p.version}
}

// keepClusters is keep for clusters. Routes wait for them.
func (h *handover) keepClusters(now time.Time) {
	h.arrival, h.since, h.offered, h.clusters.behind = now, now, time.Time{}, true
	h.ask(now)
}

// ask notes when clusters were polled.
func (h *handover) ask(now time.Time) {
	if !h.asked.IsZero() {
		h.pace.Store(int64(now.Sub(h.asked)))
	}
	h.asked = now
}

// welcome takes a proxy for one that has just come when it has a version that it was
// not told here: another replica has answered it meanwhile.
func (h *handover) welcome(p poll, last *passing, now time.Time) {
	h.await(p, now)
	if p.version == "" || last.told == "" || p.version == last.told || p.version == last.has {
		return
	}
	h.leave()
}

// await has routes wait anew for clusters when the proxy was away for longer than it
// mostly is: another replica may have answered its poll for clusters.
func (h *handover) await(p poll, now time.Time) {
	gap := now.Sub(h.polled)
	if h.polled.IsZero() {
		gap = 0
	}
	if gap > 2*max(p.next.Config.RouteDelay, h.gap)+grace && h.offered.IsZero() {
		h.since = now
	}
	h.polled, h.gap = now, gap
}

// leave forgets what is known of the proxy but what is strange of it.
func (h *handover) leave() {
	h.held, h.routed, h.clusters, h.asked = nil, nil, passing{}, time.Time{}
	h.pace.Store(0)
	h.judge()
}

// beside are the views that the proxy may still route by, besides the target.
func (h *handover) beside() []*compiled.View {
	older := h.held[:len(h.held)-1]
	if h.lately != nil {
		older = append([]*compiled.View{h.lately}, older...)
	}
	return older
}

// accepted is the newest view of those held whose answer has this version, or
// the one in whose place one with the same clusters is held; nil for none.
func (h *handover) accepted(name, version string, compose func(*compiled.View) (xds.Answer, error)) (*compiled.View, error) {
	if version == "" {
		return nil, nil
	}
	for _, v := range slices.Backward(h.held) {
		answer, err := compose(v)
		if err != nil {
			return nil, err
		}
		if answer.Version == version {
			return v, nil
		}
	}
	if s := h.routed[name]; s != nil && s.version == version && slices.Contains(h.held, s.has) {
		return s.has, nil
	}
	return nil, nil
}

// note remembers what a poll for routes told. Names are the client's to choose,
// so only the tables of the views that are held are kept.
func (h *handover) note(name string, next subscription, answered string) {
	if !slices.ContainsFunc(h.held, func(v *compiled.View) bool { return v.HasTable(name) }) {
		return
	}
	if h.routed == nil {
		h.routed = map[string]*subscription{}
	}
	before := h.routed[name]
	if before == nil {
		before = &subscription{moved: next.polled}
		h.routed[name] = before
	}
	before.follow(next)
	h.noteVersion(next.version, before.passing.told)
	before.passing.note(next.version, answered)
	h.judge()
}

// turn makes the next view the target, unless there is a newer one: a request
// may have begun before the last change was published. What is newer is told by
// the order of publishing; a revision goes back when a store is restored.
// A proxy that is not known is at a view of which is says so.
func (h *handover) turn(p poll, now time.Time, is func(*compiled.View) bool) {
	if len(h.held) == 0 {
		h.begin(p, now, is)
		return
	}
	target, next := h.target(), p.next
	if p.order < h.order {
		return
	}
	if h.order = p.order; next == target {
		return
	}
	added, removed := next.ClustersSince(target)
	if !added && !removed {
		h.replace(target, next)
		return
	}
	// A proxy that waits already does not begin to wait anew.
	if h.open(target, now) {
		h.since = now
	}
	if added {
		h.offered = time.Time{}
	}
	if len(h.held) == maxHeld {
		h.drop()
	}
	h.held = append(h.held, next)
}

func (h *handover) target() *compiled.View { return h.held[len(h.held)-1] }

// begin starts with a proxy that this server has not seen. One that has
// versions has been told by another server, or by this one before it started
// anew, and may be at a view of the past.
func (h *handover) begin(p poll, now time.Time, is func(*compiled.View) bool) {
	h.order = p.order
	h.held, h.lately, h.since, h.offered = []*compiled.View{p.next}, nil, now, now
	if p.version == "" {
		return
	}
	h.arrival, h.offered = now, time.Time{}
	h.held, h.lately = p.past(is)
	h.held = append(h.held, p.next)
	if len(h.held) > maxHeld {
		h.held = h.held[len(h.held)-maxHeld:]
	}
}

// replace puts a view with the same clusters in the place of the target.
func (h *handover) replace(target, next *compiled.View) {
	h.held[len(h.held)-1] = next
	h.clusters.behind = true
	for _, s := range h.routed {
		s.replace(target, next)
	}
}

// drop makes room by the oldest view that nothing of the proxy is at, if there
// is one.
func (h *handover) drop() {
	oldest := max(0, slices.IndexFunc(h.held, func(v *compiled.View) bool { return !h.needs(v) }))
	h.held = slices.Delete(h.held, oldest, oldest+1)
}

// needs reports whether a table of the proxy is at the view, as far as is known.
func (h *handover) needs(v *compiled.View) bool {
	for _, s := range h.routed {
		if s.at(v) {
			return true
		}
	}
	return false
}

// open reports whether routes may name the target's clusters.
func (h *handover) open(target *compiled.View, now time.Time) bool {
	switch {
	case len(h.held) == 1 && h.arrival.IsZero(), now.Sub(h.since) >= h.waitsAtMost(target):
		return true
	case h.asked.IsZero():
		return h.arrival.IsZero()
	}
	return !h.offered.IsZero() && (h.offered.Before(h.since) || now.Sub(h.offered) >= grace)
}

// waitsAtMost is openBy, but for a newcomer: its poll for clusters may still be with a
// replica that does not answer.
func (h *handover) waitsAtMost(target *compiled.View) time.Duration {
	if h.arrival.IsZero() {
		return h.openBy(target)
	}
	return max(h.openBy(target), lostFor)
}

// release lets go of the views that nothing of the proxy is at any more, and
// with them of the clusters that only they have.
func (h *handover) release(target *compiled.View, now time.Time) {
	maps.DeleteFunc(h.routed, func(_ string, s *subscription) bool { return s.silent(now, max(h.closeBy(target), lostFor)) })
	if len(h.routed) == 0 && now.Sub(h.since) < h.closeBy(target) || !h.arrival.IsZero() && now.Sub(h.arrival) < max(h.closeBy(target), history.WarmingBound) {
		return // Not all is known yet of what it routes by.
	}
	h.arrival = time.Time{}
	for _, s := range h.routed {
		if now.Sub(s.moved) < grace {
			return
		}
	}
	if !h.open(target, now) {
		return
	}
	h.held = slices.DeleteFunc(h.held, func(v *compiled.View) bool { return v != target && !h.needs(v) })
	if h.lately != nil && !h.needs(h.lately) {
		h.lately = nil
	}
}
