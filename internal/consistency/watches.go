package consistency

import (
	"fmt"

	"github.com/pilot-api/pilot-api/store"
)

// watch wants that a watcher was told every change in its scope after the
// revision that it began at, exactly once and in order, for as long as it had
// the time to.
func (c *check) watch(w *Watch) {
	if len(w.Frames) == 0 {
		return
	}
	f := &follower{check: c, watch: w, seen: w.Frames[0].Revision}
	f.due = c.order.within(w.Scope, f.seen, lastRevision(c.order))
	for _, frame := range w.Frames {
		f.frame(frame)
	}
	f.end()
}

func lastRevision(o *order) int64 {
	if len(o.changes) == 0 {
		return 0
	}
	return o.changes[len(o.changes)-1].Revision
}

// follower goes through the frames of one watcher beside the true changes.
type follower struct {
	*check
	watch  *Watch
	seen   int64    // The last revision that an event or bookmark told.
	marked int64    // The last revision that a bookmark told.
	due    []Change // Not told yet.
}

func (f *follower) violate(rule string, frame Frame, format string, args ...any) {
	f.check.violate(rule, "%s: %s: %s", f.watch.Name, frame, fmt.Sprintf(format, args...))
}

func (f *follower) frame(frame Frame) {
	switch frame.Type {
	case Began:
		if frame.Revision != f.seen {
			f.violate("watcher", frame, "it knew %d", f.seen)
		}
	case Broken:
	case Expired:
		f.expired(frame)
	case Bookmark:
		f.bookmark(frame)
	default:
		f.event(frame)
	}
}

// skip takes the changes before a revision as lost.
func (f *follower) skip(frame Frame, rule string, to int64) {
	n := 0
	for n < len(f.due) && f.due[n].Revision <= to {
		n++
	}
	if n > 0 {
		f.violate(rule, frame, "after %d came %d changes that it was not told, %s to %s", f.seen, n, f.due[0], f.due[n-1])
		f.due = f.due[n:]
	}
}

func (f *follower) event(frame Frame) {
	told := Change{store.EventType(frame.Type), Version{frame.Key, frame.Revision, frame.Value}}
	truth, ok := f.order.change(frame.Key, frame.Revision)
	switch {
	case !ok || truth != told:
		f.violate("untrue event", frame, "at this revision there is %s", truth)
		return
	case !f.watch.Scope.Contains(frame.Key):
		f.violate("event out of scope", frame, "it watches %s/%s", kindName(f.watch.Scope), f.watch.Scope.Namespace)
		return
	case frame.Revision <= f.marked:
		f.violate("event after its bookmark", frame, "a bookmark had told %d", f.marked)
	case frame.Revision <= f.seen && f.isDue(told) < 0:
		f.violate("event repeated or out of order", frame, "it had been told up to %d", f.seen)
		return
	}
	f.skip(frame, "lost event", frame.Revision-1)
	if i := f.isDue(told); i >= 0 {
		f.due[0], f.due[i] = f.due[i], f.due[0]
		f.due = f.due[1:]
	}
	f.seen = max(f.seen, frame.Revision)
}

// isDue is where a change stands among those that are due, -1 for nowhere. What
// one revision changed may come in any order.
func (f *follower) isDue(told Change) int {
	for i, c := range f.due {
		if c == told {
			return i
		}
		if c.Revision > told.Revision {
			break
		}
	}
	return -1
}

func (f *follower) bookmark(frame Frame) {
	if frame.Revision < f.seen {
		f.violate("bookmark", frame, "it goes back: %d had been told", f.seen)
		return
	}
	f.skip(frame, "bookmark that lies", frame.Revision)
	f.seen, f.marked = frame.Revision, frame.Revision
}

// expired is honest when more changes than are kept have come since.
func (f *follower) expired(frame Frame) {
	if since, honest := f.forgotten(f.seen, frame.At); !honest {
		f.violate("untrue end", frame, "only %d changes came after %d, and %d are kept", since, f.seen, f.Kept)
	}
}

func (f *follower) end() {
	last := f.watch.Frames[len(f.watch.Frames)-1]
	if n := len(f.order.within(f.watch.Scope, f.seen, f.watch.Until)); n > 0 {
		f.violate("watcher that did not come back", last, "%d changes after %d are missing, up to %d", n, f.seen, f.watch.Until)
	}
}
