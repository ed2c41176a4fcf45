package discovery

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/ir"
)

// An Envoy polls clusters, listeners and each route table on timers of their
// own. Told the same news on all of them, it would hear of a route before it
// has the cluster, or lose a cluster while a route still leads there: 503 both
// times. A handover takes one proxy from one view to the next in the order
// that loses nothing: new clusters are offered beside the old ones, then
// routes and listeners change, and only then are old clusters withdrawn.
//
// Who never polled clusters waits for nothing, and who stops polling does not
// wait for ever: openBy and closeBy bound both steps, by the pace of the proxy's
// own polls. A replica knows only of the polls it answered; the bounds are also
// what makes replicas agree again.
type handover struct {
	mu sync.Mutex
	// held are the views that the proxy may still route by, oldest first.
	// The last one is the target.
	held    []*view
	since   time.Time        // when the handover began
	asked   time.Time        // when clusters were last polled
	pace    time.Duration    // between the last two polls for clusters
	offered time.Time        // when the target's clusters were first answered
	routed  map[string]*view // by route table polled (listeners under their type), the view last answered from
	moved   time.Time        // when routed last changed
}

const (
	// grace is what an Envoy gets between an answer and the next step, to
	// apply it and to fetch the endpoints of new clusters.
	grace = 250 * time.Millisecond
	// maxHeld bounds the views of one handover: a proxy that sees changes
	// faster than it polls skips the older ones.
	maxHeld = 8
	// maxPace bounds what a handover may take: a proxy that polls more
	// seldom is told everything at once.
	maxPace = time.Minute
)

// openBy is how long after the beginning routes change at the latest. Envoy
// waits between one and two delays, so the next poll for clusters comes within
// twice the last wait; before two were seen, the mesh's own delay is taken.
func (h *handover) openBy(target *view) time.Duration {
	pace := h.pace
	if pace == 0 {
		pace = target.config.Delay
	}
	return 2*min(pace, maxPace) + grace
}

// closeBy leaves the time of another poll for routes.
func (h *handover) closeBy(target *view) time.Duration {
	return h.openBy(target) + 2*min(target.config.Delay, maxPace) + grace
}

// clusters is called for a poll for clusters. It returns the target, and the
// views whose clusters must be answered beside the target's own.
func (h *handover) clusters(next *view) (target *view, beside []*view) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	target = h.turn(next, now)
	if h.offered.IsZero() {
		h.offered = now
	}
	if h.arrived(target, now) {
		h.held = h.held[len(h.held)-1:]
	}
	if !h.asked.IsZero() {
		h.pace = now.Sub(h.asked)
	}
	h.asked = now
	return target, slices.Clone(h.held[:len(h.held)-1])
}

// routes is called for a poll for a route table, or for the listeners, and
// returns the view to answer from.
func (h *handover) routes(next *view, name string) *view {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	target := h.turn(next, now)
	answer := target
	if !h.open(target, now) {
		answer = h.held[0]
		if before := h.routed[name]; slices.Contains(h.held, before) {
			answer = before
		}
	}
	h.note(name, answer, now)
	return answer
}

// note remembers what was answered. Names are the client's to choose, so only
// the tables of the views that are held are kept.
func (h *handover) note(name string, answer *view, now time.Time) {
	if h.routed == nil {
		h.routed = map[string]*view{}
	}
	maps.DeleteFunc(h.routed, func(_ string, v *view) bool { return !slices.Contains(h.held, v) })
	if h.routed[name] != answer && answer.tables(name) {
		h.routed[name] = answer
		h.moved = now
	}
}

// tables tells whether the view has such a route table, or listeners.
func (v *view) tables(name string) bool {
	return name == ListenerType || slices.ContainsFunc(v.config.RouteTables, func(t *ir.RouteTable) bool { return t.Name == name })
}

// turn makes next the target, unless there is a newer one: a request may have
// begun before the last change was published. What is newer is told by the
// order of publishing; a revision goes back when a store is restored.
func (h *handover) turn(next *view, now time.Time) *view {
	if len(h.held) == 0 {
		h.held, h.since, h.offered = []*view{next}, now, now
		return next
	}
	target := h.held[len(h.held)-1]
	if next == target || next.serial < target.serial {
		return target
	}
	added, removed := clustersBetween(target.config, next.config)
	if !added && !removed {
		h.held[len(h.held)-1] = next
		return next
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
	return next
}

// drop makes room by the oldest view that the proxy was never told to route
// by, if there is one.
func (h *handover) drop() {
	oldest := max(0, slices.IndexFunc(h.held, func(v *view) bool {
		for _, r := range h.routed {
			if r == v {
				return false
			}
		}
		return true
	}))
	h.held = slices.Delete(h.held, oldest, oldest+1)
}

// open tells whether routes may name the target's clusters.
func (h *handover) open(target *view, now time.Time) bool {
	return len(h.held) == 1 || h.asked.IsZero() || now.Sub(h.since) >= h.openBy(target) ||
		!h.offered.IsZero() && (h.offered.Before(h.since) || now.Sub(h.offered) >= grace)
}

// arrived tells whether nothing leads to the older clusters any more.
func (h *handover) arrived(target *view, now time.Time) bool {
	if now.Sub(h.since) >= h.closeBy(target) {
		return true
	}
	for _, v := range h.routed {
		if v != target {
			return false
		}
	}
	return len(h.routed) > 0 && now.Sub(h.moved) >= grace
}

// clustersBetween tells whether next has clusters that before has not, and the
// reverse. Both are sorted by name.
func clustersBetween(before, next *ir.Config) (added, removed bool) {
	return len(withdrawn(next, before)) > 0, len(withdrawn(before, next)) > 0
}

// withdrawn are the clusters of before that next has no more.
func withdrawn(before, next *ir.Config) []*ir.Cluster {
	var out []*ir.Cluster
	for _, c := range before.Clusters {
		_, stays := slices.BinarySearchFunc(next.Clusters, c.Name, func(n *ir.Cluster, name string) int {
			return strings.Compare(n.Name, name)
		})
		if !stays {
			out = append(out, c)
		}
	}
	return out
}

// withClustersOf is the configuration together with the clusters that only the
// older views have, in their newest form; the configuration itself when there
// are none. The key names what was added.
func (v *view) withClustersOf(older []*view) (config *ir.Config, key string) {
	byName := map[string]*ir.Cluster{}
	for _, o := range older {
		for _, c := range withdrawn(o.config, v.config) {
			byName[c.Name] = c
		}
	}
	if len(byName) == 0 {
		return v.config, ""
	}
	merged := *v.config
	merged.Clusters = slices.Clone(v.config.Clusters)
	var names []string
	for name, c := range byName {
		names = append(names, name)
		merged.Clusters = append(merged.Clusters, c)
	}
	slices.SortFunc(merged.Clusters, func(a, b *ir.Cluster) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(names)
	return &merged, strings.Join(names, "\n")
}
