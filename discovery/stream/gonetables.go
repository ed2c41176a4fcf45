package stream

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// goneTables are the route tables that the target lacks and that the proxy still subscribes
// to, because connections of an earlier listener or filter chain are open. No rule reaches
// these connections any more. So their tables are closed (compiled.V3Answers.TableNamed), as
// soon as the proxy accepts no new connections for them.
type goneTables struct {
	closed []string  // names of tables that are sent closed, sorted
	since  time.Time // since when a table waits for the present listeners to take connections; zero if none does

	beside *xds.Set // the target's tables
	merged *xds.Set // with the closed ones
}

// maxClosedTables bounds the tables that a stream closes at a time, because clients choose the
// names. If there are more, the routes of the proxy do not count as synced.
const maxClosedTables = 1 << 10

// routesOf returns the tables that the proxy should have, with the closed ones.
func (st *Stream) routesOf(target *compiled.Streamed) *xds.Set {
	g := &st.gone
	if len(g.closed) == 0 {
		return target.Routes
	}
	if g.beside != target.Routes {
		g.beside, g.merged = target.Routes, target.RoutesBeside(g.closed)
	}
	return g.merged
}

// tableNamed returns the function that finds the table of a name that is pending. Of a gone
// table that is not closed yet, the proxy keeps what it has.
func (st *Stream) tableNamed(target *compiled.Streamed) func(name string) *xds.Resource {
	return func(name string) *xds.Resource {
		if r := st.routesOf(target).Named(name); r != nil || st.isGone(target, name) && st.mayHaveTable(name) {
			return r
		}
		return target.TableNamed(name)
	}
}

// closeTables decides which tables are closed, and reports whether that has changed.
func (st *Stream) closeTables(target *compiled.Streamed) (changed bool) {
	g := &st.gone
	closed := slices.DeleteFunc(slices.Clone(g.closed), func(name string) bool { return !st.routes.Wants(name) || !st.isGone(target, name) })
	unknown, due, open := st.openTables(target)
	switch closed = append(closed, unknown...); {
	case len(due) == 0:
		g.since = time.Time{}
	case st.hasOpened(target):
		closed, g.since = append(closed, due...), time.Time{}
	default:
		open = true
	}
	st.routes.closing = open || len(closed) > maxClosedTables
	closed = closed[:min(len(closed), maxClosedTables)]
	slices.Sort(closed)
	if slices.Equal(closed, g.closed) {
		return false
	}
	for _, name := range closed {
		if _, was := slices.BinarySearch(g.closed, name); !was {
			st.routes.pending.add(name)
		}
	}
	g.closed, g.beside, g.merged = closed, nil, nil
	return true
}

// openTables returns the gone tables that are not closed yet: those of which the proxy has no
// routes, and those that are due because no listener of the proxy uses them. open reports
// whether there are others.
func (st *Stream) openTables(target *compiled.Streamed) (unknown, due []string, open bool) {
	seen := 0
	for name := range st.routes.named.extra {
		if _, closed := slices.BinarySearch(st.gone.closed, name); closed || !st.isGone(target, name) {
			continue
		}
		if seen++; seen > maxClosedTables {
			return unknown, due, true
		}
		switch {
		case !st.mayHaveTable(name):
			unknown = append(unknown, name)
		case st.mayListenBy(name):
			open = true
		case !st.isKeptBy(target, name):
			due = append(due, name)
		}
	}
	return unknown, due, open
}

// isGone reports whether no listener that the proxy should have uses a table.
func (st *Stream) isGone(target *compiled.Streamed, name string) bool {
	return st.listeners.asked && target.Routes.Named(name) == nil && !target.View.Listens("", name)
}

// mayHaveTable reports whether the proxy may have routes of a table to which it subscribes.
func (st *Stream) mayHaveTable(name string) bool {
	t := &st.routes
	return !t.newly.has(name) && (t.sent.Set != nil || t.initial.before || t.initial.withSomething())
}

// mayListenBy reports whether the proxy may still accept connections for a gone table.
func (st *Stream) mayListenBy(name string) bool {
	t := &st.listeners
	if t.acked.Set == nil {
		return true
	}
	may := false
	look := func(v *compiled.View) { may = may || v != nil && v.Listens("", name) }
	look(t.acked.View)
	for _, s := range t.inFlight {
		look(s.View)
	}
	t.nacks.MaybeAtUnclear(look)
	return may
}

// isKeptBy reports whether the proxy refuses the listener that takes the place of one which
// uses a gone table. The earlier listener then stays, with its routes. The status of what the
// refused listener leads to says so.
func (st *Stream) isKeptBy(target *compiled.Streamed, name string) bool {
	kept := false
	st.listeners.nacks.StandIns(func(listener string, v *compiled.View) {
		switch {
		case v != nil:
			kept = kept || v.Listens(listener, name)
		case st.listeners.initial.before:
			// The proxy came with listeners that are not known here.
			kept = kept || target.View.SharesPort(listener, name)
		}
	})
	return kept
}

// hasOpened reports whether the proxy has all that the present listeners need to take
// connections in place of earlier ones. They may need something that does not exist, such as
// a secret. So the wait for them has an end.
func (st *Stream) hasOpened(target *compiled.Streamed) bool {
	if st.gone.since.IsZero() {
		st.gone.since = time.Now()
	}
	return st.hasWhatListenersNeed(target) || !st.within(st.gone.since)
}

func (st *Stream) hasWhatListenersNeed(target *compiled.Streamed) bool {
	has := func(t *subscription, s *xds.Set) bool {
		return len(t.inFlight) == 0 && t.pending.nothing() && t.wasSent(s)
	}
	secrets := st.secretsOf(target.V3Answers)
	hasSecrets := func() bool {
		return has(&st.secrets, secrets) && !slices.ContainsFunc(secrets.Sorted, func(r *xds.Resource) bool { return !st.secrets.Wants(r.Name) })
	}
	return has(&st.listeners, target.ListenersAt(st.proxy.Address())) && has(&st.routes, st.routesOf(target)) &&
		st.unaskedTable(target) == "" && (!st.secrets.asked || hasSecrets())
}
