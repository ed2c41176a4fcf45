package consistency

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

var (
	rule, _   = schema.KindByName("RouteRule")
	policy, _ = schema.KindByName("DestinationPolicy")

	x = schema.Key{Kind: "RouteRule", Namespace: "a", Name: "x"}
	y = schema.Key{Kind: "RouteRule", Namespace: "b", Name: "y"}
	z = schema.Key{Kind: "DestinationPolicy", Namespace: "a", Name: "z"}
)

// tick is a time; requests of these histories begin at one and end at the next.
func tick(n int) time.Duration { return time.Duration(n) * time.Second }

func op(at int, verb Verb, key schema.Key, value string, outcome Outcome, revision int64) Operation {
	o := Operation{Client: "c", Server: "s", Verb: verb, Key: key, Call: tick(at), Return: tick(at + 1), Outcome: outcome, Revision: revision}
	if verb == Get {
		o.Got = value
	} else {
		o.Value = value
	}
	return o
}

func list(at int, scope store.Scope, revision int64, items ...Version) Operation {
	return Operation{Client: "c", Server: "s", Verb: List, Scope: scope, Call: tick(at), Return: tick(at + 1), Outcome: OK, Revision: revision, Items: items}
}

func change(typ store.EventType, key schema.Key, value string, revision int64) Change {
	return Change{typ, Version{key, revision, value}}
}

func frame(at int, typ FrameType, revision int64) Frame {
	return Frame{At: tick(at), Type: typ, Revision: revision}
}

func event(at int, c Change) Frame {
	return Frame{At: tick(at), Type: FrameType(c.Type), Revision: c.Revision, Key: c.Key, Value: c.Value}
}

// story is a history that the contract allows: four objects' worth of writes,
// one after the other, then reads, and a watcher of all.
func story() *History {
	changes := []Change{
		change(store.Added, x, "1", 2),
		change(store.Added, y, "2", 3),
		change(store.Modified, x, "3", 4),
		change(store.Added, z, "4", 5),
		change(store.Deleted, y, "2", 6),
		change(store.Modified, x, "5", 7),
	}
	update := op(5, Update, x, "3", OK, 4)
	update.Expect = 2
	h := &History{Changes: changes, Kept: 100, Operations: []Operation{
		op(1, Create, x, "1", OK, 2),
		op(3, Create, y, "2", OK, 3),
		update,
		op(7, Create, z, "4", OK, 5),
		op(9, Delete, y, "", OK, 6),
		op(11, Patch, x, "5", OK, 7),
		op(13, Get, x, "5", OK, 7),
		op(13, Get, y, "", NotFound, 0),
		op(15, Create, x, "no", Exists, 0),
		list(17, store.Scope{Kind: rule}, 7, changes[5].Version),
	}}
	w := &Watch{Name: "all", Until: 7, Frames: []Frame{frame(0, Began, 1)}}
	for i, c := range changes {
		w.Frames = append(w.Frames, event(3+2*i, c))
	}
	h.Watches = []*Watch{w}
	return h
}

// TestFinds spoils a good history in one way at a time.
func TestFinds(t *testing.T) {
	finds(t, story, []spoilt{
		{"nothing", func(*History) {}, ""},
		{"unknown writes that never happened", func(h *History) {
			h.Operations = append(h.Operations, op(2, Update, x, "lost", Unknown, 0), op(2, Delete, x, "", Unknown, 0))
		}, ""},
		{"an unknown write that happened later", func(h *History) {
			h.Operations = append(h.Operations, op(14, Update, x, "late", Unknown, 0))
			h.Changes = append(h.Changes, change(store.Modified, x, "late", 8))
		}, ""},
		{"an unknown delete that happened, and the name taken again", func(h *History) {
			h.Operations = append(h.Operations, op(18, Delete, x, "", Unknown, 0), op(20, Create, x, "again", OK, 9))
			h.Changes = append(h.Changes, change(store.Deleted, x, "5", 8), change(store.Added, x, "again", 9))
		}, ""},

		{"lost event", func(h *History) { drop(h.Watches[0], 3) }, "lost event 1"},
		{"first events lost", func(h *History) { drop(h.Watches[0], 1); drop(h.Watches[0], 1) }, "lost event 1"},
		{"last event lost", func(h *History) { drop(h.Watches[0], 6) }, "watcher that did not come back 1"},
		{"watcher that went away", func(h *History) { drop(h.Watches[0], 6); h.Watches[0].Until = 0 }, ""},
		{"event twice", func(h *History) { repeat(h.Watches[0], 3) }, "event repeated or out of order 1"},
		{"event twice, by a resumed stream", func(h *History) {
			w := h.Watches[0]
			again := w.Frames[6]
			w.Frames = append(w.Frames, frame(20, Broken, 0), frame(21, Began, 7), again)
		}, "event repeated or out of order 1"},
		{"events in another order", func(h *History) {
			f := h.Watches[0].Frames
			f[3], f[4] = f[4], f[3]
		}, "event repeated or out of order 1, lost event 1"},
		{"event of another value", func(h *History) { h.Watches[0].Frames[3].Value = "1" }, "lost event 1, untrue event 1"},
		{"event of another type", func(h *History) { h.Watches[0].Frames[3].Type = "ADDED" }, "lost event 1, untrue event 1"},
		{"event that never was", func(h *History) {
			h.Watches[0].Frames = append(h.Watches[0].Frames, event(20, change(store.Modified, x, "6", 8)))
		}, "untrue event 1"},
		{"event of another namespace", func(h *History) {
			w := *h.Watches[0]
			w.Scope = store.Scope{Kind: rule, Namespace: "b"}
			w.Frames = []Frame{w.Frames[0], w.Frames[2], w.Frames[3], w.Frames[5]}
			w.Until = 0
			h.Watches = append(h.Watches, &w)
		}, "event out of scope 1"},
		{"bookmark", func(h *History) { insert(h.Watches[0], 3, frame(6, Bookmark, 3)) }, ""},
		{"bookmark of what was not told", func(h *History) { insert(h.Watches[0], 3, frame(8, Bookmark, 4)); drop(h.Watches[0], 4) }, "bookmark that lies 1"},
		{"bookmark before its event", func(h *History) { insert(h.Watches[0], 3, frame(8, Bookmark, 4)) }, "bookmark that lies 1, event after its bookmark 1"},
		{"bookmark that goes back", func(h *History) { insert(h.Watches[0], 4, frame(8, Bookmark, 3)) }, "bookmark 1"},
		{"410 for what is kept", func(h *History) { insert(h.Watches[0], 3, frame(6, Expired, 3)) }, "untrue end 1"},
		{"410 for what is no longer kept", func(h *History) {
			h.Kept = 3
			h.Watches[0].Until = 0
			h.Watches[0].Frames = []Frame{frame(0, Began, 1), event(3, h.Changes[0]), frame(18, Expired, 2)}
		}, ""},
		{"410 after a compaction by others", func(h *History) {
			insert(h.Watches[0], 3, frame(6, Expired, 3))
			h.Compactions = []Compaction{{tick(5), 4}}
		}, ""},
		{"410 for what a compaction left", func(h *History) {
			insert(h.Watches[0], 3, frame(6, Expired, 3))
			h.Compactions = []Compaction{{tick(5), 3}}
		}, "untrue end 1"},

		{"stale read of one object", func(h *History) {
			h.Operations[6] = op(13, Get, x, "3", OK, 4)
		}, "not linearizable 1, stale read 1"},
		{"read that the clock of all objects excludes", func(h *History) {
			// z may have been made at any time, but at 7 it was there.
			h.Watches = nil
			h.Operations[3].Outcome, h.Operations[3].Revision = Unknown, 0
			h.Operations = append(h.Operations, op(13, Get, z, "", NotFound, 0))
		}, "not linearizable 1, untrue refusal 1"},
		{"old state, as it was asked for", func(h *History) {
			h.Operations[6] = op(13, Get, x, "3", OK, 4)
			h.Operations[6].AtLeast = store.Any
		}, ""},
		{"older than was asked for", func(h *History) {
			h.Operations[6] = op(13, Get, x, "3", OK, 4)
			h.Operations[6].AtLeast = 7
		}, "stale read 1"},
		{"value of another version", func(h *History) {
			h.Operations[6] = op(13, Get, x, "3", OK, 7)
		}, "not linearizable 1, untrue read 1"},
		{"not found although it is there", func(h *History) {
			h.Operations[7] = op(13, Get, x, "", NotFound, 0)
		}, "not linearizable 1, untrue refusal 1"},
		{"found although it is gone", func(h *History) {
			h.Operations[7] = op(13, Get, y, "2", OK, 3)
		}, "not linearizable 1, stale read 1"},
		{"taken although it is free", func(h *History) {
			h.Operations[8] = op(15, Create, y, "no", Exists, 0)
		}, "not linearizable 1, untrue refusal 1"},
		{"conflict with the present version", func(h *History) {
			o := op(15, Update, x, "no", Conflict, 0)
			o.Expect = 7
			h.Operations = append(h.Operations, o)
		}, "not linearizable 1, untrue refusal 1"},
		{"conflict without a condition", func(h *History) {
			h.Operations = append(h.Operations, op(15, Update, x, "no", Conflict, 0))
		}, "not linearizable 1, untrue refusal 1"},
		{"conflict with an older version", func(h *History) {
			o := op(15, Update, x, "no", Conflict, 0)
			o.Expect = 4
			h.Operations = append(h.Operations, o)
		}, ""},

		{"list without an object", func(h *History) { h.Operations[9].Items = nil }, "list that was no state 1, not linearizable 1"},
		{"list with an older version", func(h *History) {
			h.Operations[9].Items = []Version{h.Changes[2].Version}
		}, "list that was no state 1, not linearizable 1"},
		{"list of two times", func(h *History) {
			h.Operations[9] = list(17, store.Scope{Namespace: "a"}, 6, h.Changes[0].Version, h.Changes[3].Version)
			h.Operations[9].AtLeast = store.Any
		}, "list that was no state 1"},
		{"list of a past state", func(h *History) {
			h.Operations[9] = list(17, store.Scope{Kind: rule}, 6, h.Changes[2].Version)
		}, "not linearizable 1, stale list 1"},
		{"list of a past state, as it was asked for", func(h *History) {
			h.Operations[9] = list(17, store.Scope{Kind: policy}, 6, h.Changes[3].Version)
			h.Operations[9].AtLeast = 6
		}, ""},

		{"list of an exact revision", func(h *History) {
			h.Operations[9] = list(17, store.Scope{Kind: rule}, 6, h.Changes[2].Version)
			h.Operations[9].Exact = 6
		}, ""},
		{"list of another revision than the exact one", func(h *History) {
			h.Operations[9] = list(17, store.Scope{Kind: rule}, 6, h.Changes[2].Version)
			h.Operations[9].Exact = 5
		}, "list of another revision 1"},
		{"exact revision that is said to be gone", func(h *History) {
			h.Operations[9] = Operation{Verb: List, Exact: 5, Call: tick(17), Return: tick(18), Outcome: Gone}
		}, "untrue refusal 1"},

		{"answer that cannot be", func(h *History) { h.Operations[6].Outcome = Unexpected }, "unexpected answer 1"},
		{"acknowledged write lost", func(h *History) {
			h.Operations = append(h.Operations, op(18, Update, x, "gone", OK, 8))
		}, "lost write 1"},
		{"acknowledged delete lost", func(h *History) {
			h.Operations = append(h.Operations, op(18, Delete, x, "", OK, 8))
		}, "lost write 1"},
		{"refused write that happened", func(h *History) {
			h.Changes = append(h.Changes, change(store.Modified, x, "no", 8))
		}, "refused write 1"},
		{"unknown write that happened twice", func(h *History) {
			h.Operations = append(h.Operations, op(18, Update, x, "twice", Unknown, 0))
			h.Changes = append(h.Changes, change(store.Modified, x, "twice", 8), change(store.Modified, x, "twice", 9))
		}, "repeated write 1"},
		{"change that nobody asked for", func(h *History) {
			h.Changes = append(h.Changes, change(store.Deleted, x, "5", 8))
		}, "unasked 1"},
		{"write in spite of its condition", func(h *History) {
			h.Operations[5].Expect = 2
		}, "not linearizable 1, write 1"},
		{"write of a revision that was already told", func(h *History) {
			h.Watches = nil
			h.Operations = h.Operations[:6]
			h.Operations[4].Call, h.Operations[4].Return = tick(13), tick(14)
		}, "order 1"},
		{"object made twice", func(h *History) {
			h.Changes = append(h.Changes, change(store.Added, x, "twice", 8))
			h.Operations = append(h.Operations, op(18, Create, x, "twice", OK, 8))
		}, "not linearizable 1, order 1, write 1"},
	})
}

// spoilt is one way to spoil a history, and all that is to be found then.
type spoilt struct {
	name  string
	spoil func(h *History)
	rules string
}

func finds(t *testing.T, good func() *History, cases []spoilt) {
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := good()
			tc.spoil(h)
			found := h.Check()
			if got := strings.Join(Rules(found), ", "); got != tc.rules {
				t.Errorf("found %q, want %q\n%s", got, tc.rules, fmt.Sprint(found))
			}
		})
	}
}

func drop(w *Watch, i int)            { w.Frames = slices.Delete(w.Frames, i, i+1) }
func repeat(w *Watch, i int)          { w.Frames = slices.Insert(w.Frames, i, w.Frames[i]) }
func insert(w *Watch, i int, f Frame) { w.Frames = slices.Insert(w.Frames, i, f) }
