package consistency

import (
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

var v = schema.Key{Kind: "RouteRule", Namespace: "a", Name: "v"}

func txn(at int, outcome Outcome, revision int64, steps ...Step) Operation {
	return Operation{
		Client: "c", Server: "s", Verb: Txn, Steps: steps, Call: tick(at), Return: tick(at + 1),
		Outcome: outcome, Revision: revision, Failed: len(steps) - 1,
	}
}

// together is a history of transactions that the contract allows, with readers
// and a watcher of all who sees a bookmark after each.
func together() *History {
	changes := []Change{
		change(store.Added, x, "1", 2),
		change(store.Modified, x, "2", 3),
		change(store.Added, y, "3", 3),
		change(store.Modified, x, "4", 4),
		change(store.Deleted, y, "3", 4),
		change(store.Added, v, "5", 4),
	}
	h := &History{Changes: changes, Kept: 100, Operations: []Operation{
		op(1, Create, x, "1", OK, 2),
		txn(3, OK, 3, Step{Update, x, "2", 2}, Step{Apply, y, "3", 0}),
		list(5, store.Scope{Kind: rule}, 3, changes[1].Version, changes[2].Version),
		txn(7, Exists, 0, Step{Update, x, "no", 3}, Step{Create, y, "no", 0}),
		txn(9, OK, 4, Step{Patch, x, "4", 3}, Step{Delete, y, "", 3}, Step{Create, v, "5", 0}),
		txn(11, NotFound, 0, Step{Apply, x, "no", 0}, Step{Delete, y, "", 0}),
		list(13, store.Scope{Kind: rule, Namespace: "a"}, 4, changes[3].Version, changes[5].Version),
	}}
	h.Operations[6].Limit = 1
	h.Watches = []*Watch{{Name: "all", Until: 4, Frames: []Frame{
		frame(0, Began, 1),
		event(2, changes[0]), frame(2, Bookmark, 2),
		event(4, changes[1]), event(4, changes[2]), frame(4, Bookmark, 3),
		event(10, changes[3]), event(10, changes[4]), event(10, changes[5]), frame(10, Bookmark, 4),
	}}}
	return h
}

// told has the watcher told these frames.
func told(frames ...[]Frame) func(*History) {
	return func(h *History) { h.Watches[0].Frames = slices.Concat(frames...) }
}

// plainTold is told of a watcher that goes on from the last event.
func plainTold(frames ...[]Frame) func(*History) {
	return func(h *History) {
		h.Watches[0].Plain = true
		told(frames...)(h)
	}
}

// resumed is a stream that broke, and the next one, which begins at a revision.
func resumed(revision int64) []Frame { return []Frame{frame(4, Broken, 0), frame(4, Began, revision)} }

// TestFindsInTransactions spoils a good history of transactions in one way at a
// time.
func TestFindsInTransactions(t *testing.T) {
	f := together().Watches[0].Frames // As they should be.
	finds(t, together, []spoilt{
		{"nothing", func(*History) {}, ""},
		{"an unknown one that never happened", func(h *History) {
			h.Operations = append(h.Operations, txn(2, Unknown, 0, Step{Update, x, "lost", 0}, Step{Delete, v, "", 0}))
		}, ""},
		{"an unknown one that happened later", func(h *History) {
			h.Operations = append(h.Operations, txn(2, Unknown, 0, Step{Update, x, "late", 0}, Step{Delete, v, "", 0}))
			h.Changes = append(h.Changes, change(store.Modified, x, "late", 5), change(store.Deleted, v, "5", 5))
		}, ""},
		{"an unknown one, half of which happened", func(h *History) {
			h.Operations = append(h.Operations, txn(2, Unknown, 0, Step{Update, x, "half", 0}, Step{Delete, v, "", 0}))
			h.Changes = append(h.Changes, change(store.Modified, x, "half", 5))
		}, "half transaction 1"},
		{"an unknown one that happened in two steps", func(h *History) {
			h.Operations = append(h.Operations, txn(14, Unknown, 0, Step{Update, x, "one", 0}, Step{Update, v, "two", 0}))
			h.Changes = append(h.Changes, change(store.Modified, x, "one", 5), change(store.Modified, v, "two", 6))
		}, "half transaction 1"},
		{"an acknowledged one, half of which is lost", func(h *History) {
			h.Operations = append(h.Operations, txn(14, OK, 5, Step{Update, x, "6", 0}, Step{Update, v, "7", 0}))
			h.Changes = append(h.Changes, change(store.Modified, x, "6", 5))
		}, "half transaction 1"},
		{"an acknowledged one that is lost", func(h *History) {
			h.Operations = append(h.Operations, txn(14, OK, 5, Step{Update, x, "6", 0}, Step{Delete, v, "", 0}))
		}, "lost write 1"},
		{"a refused one that happened", func(h *History) {
			h.Changes = append(h.Changes, change(store.Modified, x, "no", 5))
		}, "refused write 1"},
		{"two at one revision", func(h *History) {
			h.Operations = append(h.Operations, op(14, Update, x, "6", OK, 5), op(14, Update, v, "7", OK, 5))
			h.Changes = append(h.Changes, change(store.Modified, x, "6", 5), change(store.Modified, v, "7", 5))
		}, "not linearizable 1, order 1"},
		{"one in spite of a condition", func(h *History) { h.Operations[4].Steps[1].Expect = 2 }, "not linearizable 1, write 1"},
		{"one that made what was there", func(h *History) { h.Operations[4].Steps[0] = Step{Create, x, "4", 0} }, "not linearizable 1, write 1"},

		{"refused for what was possible", func(h *History) { h.Operations[3].Outcome = NotFound }, "not linearizable 1, untrue refusal 1"},
		{"refused for the second step, though the first was impossible", func(h *History) {
			h.Operations[3].Steps[0].Expect = 2
		}, "not linearizable 1"},
		{"refused for a step, whatever those behind it are", func(h *History) {
			h.Operations[3].Steps = append(h.Operations[3].Steps, Step{Create, x, "no", 0})
		}, ""},

		{"list that sees half of one", func(h *History) {
			h.Operations[2].Items = h.Operations[2].Items[:1]
		}, "list that was no state 1, not linearizable 1"},
		{"list that sees the other half", func(h *History) {
			h.Operations[2].Items[0] = h.Changes[0].Version
		}, "list that was no state 1, not linearizable 1"},
		{"list in pages of two states", func(h *History) {
			h.Operations[6].Items[0] = h.Changes[1].Version
		}, "list that was no state 1, not linearizable 1"},
		{"read of the one half, then of the other as it was", func(h *History) {
			h.Watches = nil
			h.Operations = append(h.Operations[:1:1],
				txn(3, OK, 3, Step{Update, x, "2", 2}, Step{Apply, y, "3", 0}), op(4, Get, y, "3", OK, 3), op(6, Get, x, "1", OK, 2))
			h.Operations[1].Return = tick(10)
			h.Changes = h.Changes[:3]
		}, "stale read 1"},
		{"the same in one namespace", func(h *History) {
			h.Watches = nil
			h.Operations = append(h.Operations[:1:1],
				txn(3, OK, 3, Step{Update, x, "2", 2}, Step{Apply, v, "3", 0}), op(4, Get, v, "3", OK, 3), op(6, Get, x, "1", OK, 2))
			h.Operations[1].Return = tick(10)
			h.Changes = append(h.Changes[:2:2], change(store.Added, v, "3", 3))
		}, "not linearizable 1, stale read 1"},

		{"events of one in another order", func(h *History) {
			f := h.Watches[0].Frames
			f[6], f[8] = f[8], f[6]
		}, ""},
		{"half of one was not told", func(h *History) { drop(h.Watches[0], 4) }, "split transaction 1"},
		{"half of one was not told, nor a bookmark", func(h *History) { drop(h.Watches[0], 4); drop(h.Watches[0], 4) }, "split transaction 1"},
		{"bookmark inside of one", func(h *History) {
			f := h.Watches[0].Frames
			f[4], f[5] = f[5], f[4]
		}, "event after its bookmark 1, split transaction 1"},
		{"half of one after the next", told(f[:4], f[6:7], f[4:5], f[7:]), "event repeated or out of order 1, split transaction 1"},
		{"half of one told twice", func(h *History) { repeat(h.Watches[0], 4) }, "event repeated or out of order 1"},
		{"half of the last one was not told", func(h *History) { drop(h.Watches[0], 7); drop(h.Watches[0], 8) }, "watcher that did not come back 1"},
		{"a stream that broke inside of one, which was told again as a whole", told(f[:4], resumed(2), f[3:]), ""},
		{"the same, without what was told before", told(f[:4], resumed(2), f[4:]), "split transaction 1"},
		{"a watcher that goes on inside of one", told(f[:4], resumed(3), f[5:]), "split transaction 1, watcher 1"},
		{"a plain watcher that goes on inside of one, which is told again as a whole", plainTold(f[:4], resumed(3), f[3:]), ""},
		{"a plain watcher that goes on behind one, which is told again as a whole", plainTold(f[:6], resumed(3), f[3:]), ""},
		{"a plain watcher that goes on inside of one, and is not told the rest", plainTold(f[:4], resumed(3), f[5:]), "split transaction 1"},
		{"a plain watcher that goes on behind one, half of which is told again", plainTold(f[:6], resumed(3), f[3:4], f[6:]), "split transaction 1"},
		{"one that is told again to who knew all of it", told(f[:6], resumed(3), f[3:]), "event repeated or out of order 2"},
	})
}
