package poll

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// Transition takes one polling proxy from its view to the next, make before break: first it
// offers new clusters beside the old ones, then it changes routes and listeners, and last
// it withdraws the old clusters. An Envoy polls clusters, listeners and each route table on
// timers of their own. If all polls got the new view at once, the proxy could get a route
// before its cluster, or lose a cluster while a route still leads there: 503 both times.
//
// Each poll carries the version that the proxy has accepted. Only this version shows its
// routes: an answer may have been lost or refused.
//
// A proxy that never polled clusters waits for nothing. If it stops polling them, its
// wait ends: openBy bounds the first step by the pace of the proxy's own polls. The
// second step lasts as long as the proxy polls for routes without having accepted those
// that leave the old clusters.
type Transition struct {
	// mu is held while a view is encoded. The fleet's lock may be taken under it, so a
	// holder of the fleet's lock must not wait for mu.
	mu sync.Mutex
	// held are the views that the proxy may still route by, oldest first.
	// The last one is the target.
	held []*compiled.View
	// recent has clusters that a proxy may still route to if it came with versions; nil if
	// there are none.
	recent *compiled.View
	order  int64         // of the target
	since  time.Time     // when the transition began
	polled time.Time     // when anything was last polled for
	gap    time.Duration // time between the last two polls
	asked  time.Time     // when clusters were last polled for
	pace   atomic.Int64  // a time.Duration between the last two polls for clusters, 0 before two were seen
	// A poll carried a version, and one the version that it was answered before.
	hasVersion, cameBack atomic.Bool
	offered              time.Time // when the target's clusters were first sent
	// arrival is when a proxy came that already had versions. Only its polls for routes
	// show what it routes by. It is zero once that is known.
	arrival time.Time
	roams   bool // it has come with a version that another replica had sent it meanwhile
	// routed has the subscriptions by the name of the route table, listeners under their
	// type.
	routed   map[string]*subscription
	clusters passing
	// endpoints and secrets are polled one by one.
	endpoints, secrets shown
	at                 atomic.Pointer[compiled.Polled] // the last one all of which it has shown to have
	refuses            bool                            // what it is answered, of any type
	Refusing           func(does bool)                 // is called when that changes
	// emptied are the endpoint sets that are empty now and of which the proxy has instances,
	// since when.
	emptied map[string]time.Time
	// unknownVersions are those that it has and that are of no view known here, by type and
	// table.
	unknownVersions map[string]unknownVersion
	// listened is since when the proxy is known to have the target's listeners, as long as a
	// gone table waits for them.
	listened time.Time
}

const (
	// grace is the time between an answer and the next step, in which an Envoy applies the
	// answer and fetches the endpoints of new clusters.
	grace = 250 * time.Millisecond
	// lostFor is how long all polls for one type may go to a replica that does not answer.
	lostFor = 10 * time.Second
)

// openBy returns the time after which routes change at the latest. An Envoy waits between
// one and two delays, so its next poll for clusters comes within twice the last wait, and
// one poll may go to another replica. The delay between polls for clusters is set where the
// proxy was started. Before two such polls were seen, the longest delay in the mesh
// settings is used.
func (t *Transition) openBy(target *compiled.View) time.Duration {
	return 4*min(t.paceFor(target), pastviews.MaxPace) + grace
}

// paceFor returns the time between two polls for clusters, or a bound if it is not known.
func (t *Transition) paceFor(v *compiled.View) time.Duration {
	if pace := time.Duration(t.pace.Load()); pace != 0 {
		return pace
	}
	return max(v.Config.RouteDelay, v.Config.Delay)
}

// closeBy returns the time after which old clusters go at the latest: there was time for
// another poll for routes.
func (t *Transition) closeBy(target *compiled.View) time.Duration {
	return t.openBy(target) + 2*min(target.Config.RouteDelay, pastviews.MaxPace) + grace
}

// Request is one poll: what the proxy says, and what is published for it.
type Request struct {
	Version string         // that the proxy has accepted; "" for none
	Next    *compiled.View // that is published for it
	Order   int64          // a view that is published later has a higher order
	// Past returns the views that a proxy may be at if this server does not know it, and a
	// view with only clusters that it may have, or nil. It leaves out views that are older
	// than one that the proxy is at.
	Past func(is func(*compiled.View) bool) (views []*compiled.View, recent *compiled.View)
	// IsCaughtUp reports whether this server has all changes that were stored before the
	// given time.
	IsCaughtUp func(time.Time) bool
}

// AnswerClusters returns the answer to a poll for clusters. compose makes it from the
// target and the views that have clusters which the target lacks.
func (t *Transition) AnswerClusters(p Request, compose func(target *compiled.View, beside []*compiled.View) (xds.Answer, error)) (xds.Answer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	is := func(v *compiled.View) bool {
		answer, err := compose(v, nil)
		return err == nil && answer.Version == p.Version
	}
	t.welcome(p, &t.clusters, now)
	t.doubt(p, now, is)
	t.advance(p, now, is)
	if t.isUnknown(p, xds.ClusterType, &t.clusters, now, is) {
		t.keepClusters(now)
		return xds.Answer{Version: p.Version}, nil
	}
	target := t.target()
	for _, s := range t.routed {
		s.missed++
	}
	t.release(target, now)
	answer, err := compose(target, t.beside())
	if err != nil {
		return xds.Answer{}, err
	}
	if t.offered.IsZero() {
		t.offered = now
		if answer.Version == p.Version {
			t.offered = t.since.Add(-grace) // The proxy has the clusters, and had time to fetch their endpoints.
		}
	}
	t.noteVersion(p.Version, t.clusters.sent)
	t.clusters.note(p.Version, answer.Version)
	t.noteRefusing()
	t.ask(now)
	return answer, nil
}

// AnswerRoutes returns the answer to a poll for a route table, or for the listeners.
// compose makes it from a view.
func (t *Transition) AnswerRoutes(p Request, name string, compose func(*compiled.View) (xds.Answer, error)) (xds.Answer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	var last passing
	if s := t.routed[name]; s != nil {
		last = s.passing
	}
	t.welcome(p, &last, now)
	is := func(v *compiled.View) bool {
		answer, err := compose(v)
		return err == nil && answer.Version == p.Version
	}
	t.advance(p, now, is)
	if t.isUnknown(p, name, &last, now, is) {
		return t.keep(p, name, now), nil
	}
	target := t.target()
	if t.lacksTable(p, name, target, now) {
		return xds.Answer{}, ErrBehind
	}
	if t.awaitsListeners(name, target, now) {
		if p.Version == "" {
			return (&xds.Set{TypeURL: xds.RouteType}).Answer([]string{name}), nil
		}
		return t.keep(p, name, now), nil
	}
	has, err := t.accepted(name, p.Version, compose)
	if err != nil {
		return xds.Answer{}, err
	}
	from := target
	if !t.open(target, now) {
		switch {
		case has != nil:
			from = has
		case p.Version != "":
			return t.keep(p, name, now), nil
		default:
			from = t.held[0]
			if s := t.routed[name]; s != nil && slices.Contains(t.held, s.sent) {
				from = s.sent
			}
		}
	}
	answer, err := compose(from)
	if err == nil {
		t.note(name, subscription{polled: now, version: p.Version, acked: has, sent: from}, answer.Version)
	}
	return answer, err
}

// keep answers a proxy that has an unknown version: it keeps that version.
func (t *Transition) keep(p Request, name string, now time.Time) xds.Answer {
	t.note(name, subscription{polled: now, version: p.Version}, p.Version)
	return xds.Answer{Version: p.Version}
}

// keepClusters is keep for clusters. Routes wait for them.
func (t *Transition) keepClusters(now time.Time) {
	t.arrival, t.since, t.offered, t.clusters.behind = now, now, time.Time{}, true
	t.ask(now)
}

// ask records a poll for clusters.
func (t *Transition) ask(now time.Time) {
	if !t.asked.IsZero() {
		t.pace.Store(int64(now.Sub(t.asked)))
	}
	t.asked = now
}

// welcome treats a proxy as new if it has a version that it was not sent here: another
// replica has answered it in between.
func (t *Transition) welcome(p Request, last *passing, now time.Time) {
	t.await(p, now)
	if p.Version == "" || last.sent == "" || p.Version == last.sent || p.Version == last.acked {
		return
	}
	t.roams = true
	t.reset()
}

// doubt keeps what was withdrawn recently, as for a new proxy, if there is a new view and
// another replica may have sent the proxy clusters that its version does not show: an Envoy
// that refuses a part of its clusters applies the rest and keeps its version.
func (t *Transition) doubt(p Request, now time.Time, is func(*compiled.View) bool) {
	if len(t.held) == 0 || p.Version == "" || p.Order <= t.order || p.Next == t.target() {
		return
	}
	if p.Version == t.clusters.sent && !t.roams && !t.missedPoll(p, now) {
		return
	}
	if _, recent := p.Past(is); recent != nil {
		t.recent, t.arrival, t.since, t.offered = recent, now, now, time.Time{}
	}
}

// missedPoll reports whether a poll for clusters may have gone to another replica. An Envoy
// waits between one and two delays.
func (t *Transition) missedPoll(p Request, now time.Time) bool {
	pace := max(t.paceFor(p.Next), p.Next.Config.RouteDelay)
	return !t.asked.IsZero() && now.Sub(t.asked) > 2*pace+grace
}

// await makes routes wait for clusters again if the proxy was away for longer than usual:
// another replica may have answered its poll for clusters.
func (t *Transition) await(p Request, now time.Time) {
	gap := now.Sub(t.polled)
	if t.polled.IsZero() {
		gap = 0
	}
	if gap > 2*max(p.Next.Config.RouteDelay, t.gap)+grace && t.offered.IsZero() {
		t.since = now
	}
	t.polled, t.gap = now, gap
}

// reset forgets what is known of the proxy, except its unknown versions.
func (t *Transition) reset() {
	t.held, t.routed, t.clusters, t.asked = nil, nil, passing{}, time.Time{}
	t.endpoints, t.secrets = shown{asked: t.endpoints.asked}, shown{asked: t.secrets.asked}
	t.pace.Store(0)
	t.noteRefusing()
}

// beside returns the views, except the target, that the proxy may still route by.
func (t *Transition) beside() []*compiled.View {
	older := t.held[:len(t.held)-1]
	if t.recent != nil {
		older = append([]*compiled.View{t.recent}, older...)
	}
	return older
}

// accepted returns the newest held view whose answer has this version, or the held view
// that replaced such a view because its clusters are the same; nil for none.
func (t *Transition) accepted(name, version string, compose func(*compiled.View) (xds.Answer, error)) (*compiled.View, error) {
	if version == "" {
		return nil, nil
	}
	for _, v := range slices.Backward(t.held) {
		answer, err := compose(v)
		if err != nil {
			return nil, err
		}
		if answer.Version == version {
			return v, nil
		}
	}
	if s := t.routed[name]; s != nil && s.version == version && slices.Contains(t.held, s.acked) {
		return s.acked, nil
	}
	return nil, nil
}

// note records a poll for routes.
func (t *Transition) note(name string, next subscription, answered string) {
	if !t.records(name) {
		return
	}
	if t.routed == nil {
		t.routed = map[string]*subscription{}
	}
	before := t.routed[name]
	if before == nil {
		before = &subscription{moved: next.polled}
		t.routed[name] = before
	}
	before.follow(next)
	t.noteVersion(next.version, before.passing.sent)
	before.passing.note(next.version, answered)
	t.noteRefusing()
}

// advance makes the next view the target, unless there is a newer one: a request
// may have begun before the last change was published. The order of publishing
// decides which view is newer, because a revision goes back when a store is restored.
// For an unknown proxy, is reports the views that it may be at.
func (t *Transition) advance(p Request, now time.Time, is func(*compiled.View) bool) {
	if len(t.held) == 0 {
		t.begin(p, now, is)
		return
	}
	target, next := t.target(), p.Next
	if p.Order < t.order {
		return
	}
	if t.order = p.Order; next == target {
		return
	}
	added, removed := next.ClustersSince(target)
	if !added && !removed {
		t.replace(target, next)
		return
	}
	// A proxy that is waiting already does not start to wait again.
	if t.open(target, now) {
		t.since = now
	}
	if added {
		t.offered = time.Time{}
	}
	if len(t.held) == pastviews.MaxHeld {
		t.drop()
	}
	t.held = append(t.held, next)
}

func (t *Transition) target() *compiled.View { return t.held[len(t.held)-1] }

// begin starts with a proxy that this server has not seen. A proxy with versions got them
// from another server, or from this one before its restart, and may be at a past view.
func (t *Transition) begin(p Request, now time.Time, is func(*compiled.View) bool) {
	t.order = p.Order
	t.held, t.recent, t.since, t.offered = []*compiled.View{p.Next}, nil, now, now
	if p.Version == "" {
		return
	}
	t.arrival, t.offered = now, time.Time{}
	t.held, t.recent = p.Past(is)
	t.held = append(t.held, p.Next)
	if len(t.held) > pastviews.MaxHeld {
		t.held = t.held[len(t.held)-pastviews.MaxHeld:]
	}
}

// replace replaces the target by a view with the same clusters.
func (t *Transition) replace(target, next *compiled.View) {
	t.held[len(t.held)-1] = next
	t.clusters.behind = true
	for _, s := range t.routed {
		s.replace(target, next)
	}
}

// drop drops the oldest view that no table of the proxy is at or, if there is none, the
// oldest view.
func (t *Transition) drop() {
	oldest := max(0, slices.IndexFunc(t.held, func(v *compiled.View) bool { return !t.needs(v) }))
	t.held = slices.Delete(t.held, oldest, oldest+1)
}

// needs reports whether a table of the proxy may be at the view.
func (t *Transition) needs(v *compiled.View) bool {
	for _, s := range t.routed {
		if s.at(v) {
			return true
		}
	}
	return false
}

// open reports whether routes may name the target's clusters.
func (t *Transition) open(target *compiled.View, now time.Time) bool {
	switch {
	case len(t.held) == 1 && t.arrival.IsZero(), now.Sub(t.since) >= t.waitsAtMost(target):
		return true
	case t.asked.IsZero():
		return t.arrival.IsZero()
	}
	return !t.offered.IsZero() && (t.offered.Before(t.since) || now.Sub(t.offered) >= grace)
}

// waitsAtMost returns openBy, or more for a new proxy: its poll for clusters may be waiting
// for a replica that does not answer.
func (t *Transition) waitsAtMost(target *compiled.View) time.Duration {
	if t.arrival.IsZero() {
		return t.openBy(target)
	}
	return max(t.openBy(target), lostFor)
}

// ForgetPast releases the past views, as if none had been found when the proxy came. It
// does nothing while a poll is being answered.
func (t *Transition) ForgetPast() {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	isPast := func(v *compiled.View) bool { return v.Past != nil }
	t.held = slices.DeleteFunc(t.held, isPast)
	for _, s := range t.routed {
		if s.acked != nil && isPast(s.acked) {
			s.acked = nil
		}
		if s.sent != nil && isPast(s.sent) {
			s.sent = nil
		}
	}
}

// ForgetReplaced forgets the views of a proxy that has not polled since a revision, if its
// view was replaced by then. The server then treats the proxy like one that another server
// has answered: it does not know what the proxy runs.
func (t *Transition) ForgetReplaced(by int64) {
	if !t.mu.TryLock() {
		return // It polls.
	}
	defer t.mu.Unlock()
	if len(t.held) == 0 {
		return
	}
	if until := t.target().Until.Load(); until != 0 && until <= by {
		t.recent = nil
		t.at.Store(nil)
		t.reset()
	}
}

// release lets go of the views that nothing of the proxy is at any more, and
// with them of the clusters that only they have.
func (t *Transition) release(target *compiled.View, now time.Time) {
	maps.DeleteFunc(t.routed, func(_ string, s *subscription) bool { return s.silent(now, max(t.closeBy(target), lostFor)) })
	if len(t.routed) == 0 && now.Sub(t.since) < t.closeBy(target) || !t.arrival.IsZero() && now.Sub(t.arrival) < max(t.closeBy(target), pastviews.WarmingBound) {
		return // It is not yet known what the proxy routes by.
	}
	t.arrival = time.Time{}
	for _, s := range t.routed {
		if now.Sub(s.moved) < grace {
			return
		}
	}
	if !t.open(target, now) {
		return
	}
	t.held = slices.DeleteFunc(t.held, func(v *compiled.View) bool { return v != target && !t.needs(v) })
	if t.recent != nil && !t.needs(t.recent) {
		t.recent = nil
	}
}
