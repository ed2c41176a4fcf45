package consistency

import (
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/store"
)

// watch requires that a watcher received every change in its scope after its first
// revision, exactly once and in order, as far as it had time to.
func (c *check) watch(w *Watch) {
	if len(w.Frames) == 0 {
		return
	}
	f := &follower{check: c, watch: w}
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

// follower compares the frames of one watcher with the true changes.
type follower struct {
	*check
	watch  *Watch
	seen   int64    // The last revision of an event or bookmark.
	marked int64    // The last revision of a bookmark.
	due    []Change // Not received yet.
	begins bool     // Nothing was received since it began.
}

func (f *follower) violate(rule string, frame Frame, format string, args ...any) {
	f.check.violate(rule, "%s: %s: %s", f.watch.Name, frame, fmt.Sprintf(format, args...))
}

func (f *follower) frame(frame Frame) {
	switch frame.Type {
	case Began:
		f.began(frame)
	case Broken:
	case Expired:
		f.expired(frame)
	case Bookmark:
		f.bookmark(frame)
		f.begins = false
	default:
		if f.begins && frame.Revision == f.seen {
			f.again()
		}
		f.event(frame)
		f.begins = false
	}
}

// began moves the follower back to the revision from which the watcher resumes: the
// watcher receives again what it asks for again. A plain watcher may still lack the rest
// of a transaction whose stream broke in the middle.
func (f *follower) began(frame Frame) {
	if !f.watch.Plain && f.dueUpTo(frame.Revision) > 0 || f.dueUpTo(frame.Revision-1) > 0 {
		f.violate("watcher", frame, "it goes on from there and was not told %s", f.due[0])
	}
	rest := f.due[:f.dueUpTo(frame.Revision)]
	f.seen, f.marked, f.begins = frame.Revision, 0, true
	f.due = slices.Concat(rest, f.after(f.seen))
}

// again moves the follower of a plain watcher back to before a transaction.
func (f *follower) again() {
	if whole := f.order.within(f.watch.Scope, f.seen-1, f.seen); f.watch.Plain && len(whole) > 1 {
		f.due = f.after(f.seen - 1)
		f.seen--
	}
}

// after returns the changes that are due after a revision.
func (f *follower) after(revision int64) []Change {
	return f.order.within(f.watch.Scope, revision, lastRevision(f.order))
}

// dueUpTo returns the number of due changes up to a revision.
func (f *follower) dueUpTo(revision int64) (n int) {
	for n < len(f.due) && f.due[n].Revision <= revision {
		n++
	}
	return n
}

// skip records the due changes up to a revision as lost. If a part of their transaction
// was received, that is a split transaction.
func (f *follower) skip(frame Frame, rule string, to int64) {
	n := f.dueUpTo(to)
	if n > 0 && f.due[0].Revision == f.seen {
		rule = "split transaction"
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

// isDue returns the index of a change among those that are due, or -1. The changes of one
// revision may come in any order.
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

// expired checks that more changes than are kept have come since.
func (f *follower) expired(frame Frame) {
	if since, honest := f.forgotten(f.seen, frame.At); !honest {
		f.violate("untrue end", frame, "only %d changes came after %d, and %d are kept", since, f.seen, f.Kept)
	}
}

func (f *follower) end() {
	last := f.watch.Frames[len(f.watch.Frames)-1]
	if n := f.dueUpTo(f.watch.Until); n > 0 {
		f.violate("watcher that did not come back", last, "%d changes after %d are missing, up to %d", n, f.seen, f.watch.Until)
	}
}
