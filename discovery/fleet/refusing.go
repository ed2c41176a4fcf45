package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/stream"
)

// refusing are the proxies that do not take what they are answered. Its lock is taken
// under that of the fleet.
type refusing struct {
	mu     sync.Mutex
	all    clientSet
	turned func(node string, refuses bool) // is called for each change, under the lock
}

// note takes down whether a proxy refuses, as it is when nobody else takes it down.
func (r *refusing) note(c *Client, refuses func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, did := r.all[c]
	does := !c.gone.Load() && refuses()
	switch {
	case !does:
		delete(r.all, c)
	case r.all == nil:
		r.all = clientSet{c: {}}
	default:
		r.all[c] = struct{}{}
	}
	if did != does && r.turned != nil && !c.gone.Load() {
		r.turned(c.Node.ID, does)
	}
}

// NoteRefusing takes down whether any stream of a proxy refuses something, or its
// polls do.
func (f *Fleet) NoteRefusing(c *Client) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	f.refusing.note(c, func() bool {
		return c.polls.Load() || c.denied.Load() || slices.ContainsFunc(c.streams, func(st *stream.Stream) bool { return st.HasNacks() })
	})
}

func (r *refusing) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

func (r *refusing) sorted() []*Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*Client
	for c := range r.all {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Client) int { return cmp.Compare(a.Node.ID, b.Node.ID) })
	return all
}

// MaxRefusals bounds the proxies that are named.
const MaxRefusals = 20

// Refusals names the proxies that do not take what they are answered.
func (f *Fleet) Refusals() diag.List {
	var all diag.List
	proxies := f.refusing.sorted()
	for i, c := range proxies {
		if i == MaxRefusals {
			return append(all, feedback.NewRefusalProblem(diag.Refused, fmt.Sprintf("%d more proxies refuse what they are answered, or do not get it", len(proxies)-i)))
		}
		listed := len(all)
		note := func(ref diag.Ref, r feedback.Refusal) {
			// Several parts of its configuration may be refused in the same words.
			if p := problemOf(ref, r); !slices.Contains(all[listed:], p) {
				all = append(all, p)
			}
		}
		f.eachRefusalOf(c, note)
		c.Transition.EachRefusal(c.Node.ID, note)
		f.eachDenialOf(c, note)
		kept := c.Transition.Refusals()
		if len(all) > listed || len(kept) == 0 { // The latter has healed just now.
			continue
		}
		all = append(all, feedback.NewRefusalProblem(diag.Refused, fmt.Sprintf("proxy %s refuses what it is answered, or does not get it: it keeps %s; its log says why",
			c.Node.ID, strings.Join(kept, ", "))))
	}
	return all
}

// problemOf is a refusal of what came from an object, or of the zero Ref if that is not known.
func problemOf(ref diag.Ref, r feedback.Refusal) diag.Problem {
	words := r.String()
	if !r.Withheld {
		words = fmt.Sprintf("proxy %s refuses its %s, and keeps what it had instead: %s", r.Node, r.Type, r.OneLine())
	}
	p := feedback.NewRefusalProblem(diag.Refused, words)
	p.Object = ref
	return p
}

// eachRefusalOf visits what the streams of a proxy refuse, by the objects that it came
// from; that of nothing in particular comes with the zero Ref.
func (f *Fleet) eachRefusalOf(c *Client, visit func(diag.Ref, feedback.Refusal)) {
	for _, st := range f.streamsOf(c) {
		st.EachRefusal(visit)
	}
}

// RefusingCount is how many proxies refuse something.
func (f *Fleet) RefusingCount() int { return f.refusing.count() }
