package main

import (
	"slices"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/store"
)

// TestFindsInRecorded records a history in which nothing goes wrong, spoils it in
// one way at a time, and wants each to be found: a checker that cannot fail is
// worth nothing.
func TestFindsInRecorded(t *testing.T) {
	outside.Slow(t)
	s := brief(t)
	s.Calm, s.Duration, s.Least = true, 0, 600
	result, err := run(t.Context(), s, openEmbedded)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.violations) > 0 {
		t.Fatal(result)
	}
	for _, tc := range []struct {
		name  string
		rule  string // One that is found; others may be besides.
		spoil func(h *consistency.History) bool
	}{
		{"lost write", "lost write", loseWrite},
		{"write that was refused", "refused write", refuseWrite},
		{"stale read", "stale read", readStale},
		{"stale read, by porcupine", "not linearizable", readStale},
		{"half of a transaction", "half transaction", halve},
		{"list that sees half of a transaction", "list that was no state", listHalf},
		{"the same, by porcupine", "not linearizable", listHalf},
		{"list without an object", "list that was no state", func(h *consistency.History) bool {
			return shortenList(h, 0)
		}},
		{"list in pages without an object", "list that was no state", func(h *consistency.History) bool {
			return shortenList(h, 1)
		}},
		{"transaction that is split in a watch", "split transaction", splitWatch},
		{"event told twice", "event repeated or out of order", repeatEvent},
		{"event not told", "bookmark that lies", dropEvent},
		{"watcher that is left behind", "watcher that did not come back", leaveBehind},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := copied(result.history)
			if !tc.spoil(h) {
				t.Fatal("the history has nothing that could be spoilt so")
			}
			found := h.Check()
			if !slices.ContainsFunc(found, func(v consistency.Violation) bool { return v.Rule == tc.rule }) {
				t.Errorf("found %v, not %q", consistency.Rules(found), tc.rule)
			}
		})
	}
}

// copied can be spoilt without the original.
func copied(h *consistency.History) *consistency.History {
	c := *h
	c.Operations, c.Changes, c.Watches = slices.Clone(h.Operations), slices.Clone(h.Changes), nil
	for _, w := range h.Watches {
		one := *w
		one.Frames = slices.Clone(w.Frames)
		c.Watches = append(c.Watches, &one)
	}
	return &c
}

func wasTxn(op consistency.Operation) bool {
	return op.Verb == consistency.Txn && op.Outcome == consistency.OK
}

func loseWrite(h *consistency.History) bool {
	i := slices.IndexFunc(h.Operations, func(op consistency.Operation) bool {
		return op.Verb == consistency.Update && op.Outcome == consistency.OK
	})
	return i >= 0 && loseChange(h, h.Operations[i].Revision)
}

func halve(h *consistency.History) bool {
	i := slices.IndexFunc(h.Operations, wasTxn)
	return i >= 0 && loseChange(h, h.Operations[i].Revision)
}

// loseChange takes one change of a revision out of the order.
func loseChange(h *consistency.History, revision int64) bool {
	i := slices.IndexFunc(h.Changes, func(c consistency.Change) bool { return c.Revision == revision })
	if i >= 0 {
		h.Changes = slices.Delete(h.Changes, i, i+1)
	}
	return i >= 0
}

func refuseWrite(h *consistency.History) bool {
	i := slices.IndexFunc(h.Operations, wasTxn)
	if i >= 0 {
		h.Operations[i].Outcome = consistency.Refused
	}
	return i >= 0
}

// readStale has somebody, when all is over, read the state before the last one.
func readStale(h *consistency.History) bool {
	i := slices.IndexFunc(h.Changes, func(c consistency.Change) bool { return c.Type == store.Modified })
	if i < 0 {
		return false
	}
	before := versionBefore(h, h.Changes[i])
	end := h.Operations[len(h.Operations)-1].Return + time.Hour
	h.Operations = append(h.Operations, consistency.Operation{
		Verb: consistency.Get, Key: before.Key, Call: end, Return: end + 1,
		Outcome: consistency.OK, Revision: before.Revision, Got: before.Value,
	})
	return true
}

// versionBefore is the state that a change came upon.
func versionBefore(h *consistency.History, change consistency.Change) (before consistency.Version) {
	for _, c := range h.Changes {
		if c.Key == change.Key && c.Revision < change.Revision {
			before = c.Version
		}
	}
	return before
}

// listHalf puts into a list the state that a transaction came upon, for one of
// two objects that it changed.
func listHalf(h *consistency.History) bool {
	for i, list := range h.Operations {
		for j, item := range list.Items {
			other := slices.ContainsFunc(list.Items, func(other consistency.Version) bool {
				return other != item && other.Revision == item.Revision && other.Key.Namespace == item.Key.Namespace
			})
			before := versionBefore(h, consistency.Change{Version: item})
			if other && before.Revision != 0 && list.AtLeast == 0 && list.Exact == 0 {
				h.Operations[i].Items = slices.Clone(list.Items)
				h.Operations[i].Items[j] = before
				return true
			}
		}
	}
	return false
}

// shortenList takes the last object from a list, read in pages or not.
func shortenList(h *consistency.History, limit int) bool {
	i := slices.IndexFunc(h.Operations, func(op consistency.Operation) bool {
		return len(op.Items) > limit && min(op.Limit, 1) == limit
	})
	if i >= 0 {
		items := h.Operations[i].Items
		h.Operations[i].Items = items[:len(items)-1]
	}
	return i >= 0
}

// spoilFrames changes the frames of the first watcher for which at finds a place.
func spoilFrames(h *consistency.History, at func(before, f consistency.Frame) bool, spoil func(frames []consistency.Frame, i int) []consistency.Frame) bool {
	for _, w := range h.Watches {
		for i := 1; i < len(w.Frames); i++ {
			if at(w.Frames[i-1], w.Frames[i]) {
				w.Frames = spoil(w.Frames, i)
				return true
			}
		}
	}
	return false
}

func isEvent(f consistency.Frame) bool { return f.Value != "" }

func splitWatch(h *consistency.History) bool {
	return spoilFrames(h, func(before, f consistency.Frame) bool {
		return isEvent(before) && isEvent(f) && before.Revision == f.Revision
	}, func(frames []consistency.Frame, i int) []consistency.Frame {
		return slices.Insert(frames, i, consistency.Frame{At: frames[i].At, Type: consistency.Bookmark, Revision: frames[i].Revision})
	})
}

func repeatEvent(h *consistency.History) bool {
	return spoilFrames(h, func(before, f consistency.Frame) bool { return isEvent(before) && isEvent(f) },
		func(frames []consistency.Frame, i int) []consistency.Frame {
			return slices.Insert(frames, i+1, frames[i])
		})
}

// dropEvent takes the only event between two bookmarks.
func dropEvent(h *consistency.History) bool {
	var last consistency.Frame
	return spoilFrames(h, func(before, f consistency.Frame) bool {
		alone := last.Type == consistency.Bookmark && isEvent(before) && f.Type == consistency.Bookmark
		last = before
		return alone
	}, func(frames []consistency.Frame, i int) []consistency.Frame { return slices.Delete(frames, i-1, i) })
}

// leaveBehind ends the account of a watcher before its last event.
func leaveBehind(h *consistency.History) bool {
	for _, w := range h.Watches {
		if w.Until == 0 {
			continue
		}
		for i, f := range w.Frames {
			if isEvent(f) {
				w.Frames = w.Frames[:i]
				return true
			}
		}
	}
	return false
}
