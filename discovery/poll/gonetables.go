package poll

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// A proxy polls for the table of a gateway's listener as long as connections of the listener
// are open, also if the listener and the table are gone. The answer is then a table that
// refuses their requests (compiled.V3Answers.RoutesNamed). It must not come before the proxy
// has the new listeners, because until then new connections get it too.

// maxGone bounds the tables of one proxy that are recorded if there are gone ones among them,
// because clients choose the names.
const maxGone = 1 << 10

// awaitsListeners reports whether a table is gone, and the proxy may still accept connections
// for it.
func (t *Transition) awaitsListeners(name string, target *compiled.View, now time.Time) bool {
	if !compiled.IsGatewayTable(name) || target.HasTable(name) || target.Listens("", name) {
		return false
	}
	l := t.routed[xds.ListenerType]
	if l == nil || l.acked != target || l.passing.status(l.sent == target).State != feedback.Synced {
		t.listened = time.Time{}
		return true
	}
	if t.listened.IsZero() {
		t.listened = now
	}
	has := func(table string) bool { return t.routed[table] != nil && t.routed[table].version != "" }
	return !target.AllTables(has) && now.Sub(t.listened) < pastviews.WarmingBound
}

// records reports whether polls for a table are recorded: those of tables that a held view
// has, and of some that are gone.
func (t *Transition) records(name string) bool {
	return slices.ContainsFunc(t.held, func(v *compiled.View) bool { return v.HasTable(name) }) ||
		compiled.IsGatewayTable(name) && (t.routed[name] != nil || len(t.routed) < maxGone)
}
