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

// refusing has the proxies that refuse what they are answered. Its lock may be taken while
// that of the fleet is held.
type refusing struct {
	mu      sync.Mutex
	all     clientSet
	changed func(node string, refuses bool) // is called for each change, under the lock
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
	if did != does && r.changed != nil && !c.gone.Load() {
		r.changed(c.Node.ID, does)
	}
}

// NoteRefusing records whether a stream of a proxy, or one of its polls, refuses something.
func (f *Fleet) NoteRefusing(c *Client) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	f.refusing.note(c, func() bool {
		return c.polls.Load() || c.denied.Load() || slices.ContainsFunc(c.streams, (*stream.Stream).HasNacks) || slices.ContainsFunc(c.secrets.open, (*stream.Stream).HasNacks)
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

// MaxRefusals bounds the proxies that a report names.
const MaxRefusals = 20

// Refusals returns a problem for each proxy that refuses its answers.
func (f *Fleet) Refusals() diag.List {
	var all diag.List
	proxies := f.refusing.sorted()
	for i, c := range proxies {
		if i == MaxRefusals {
			return append(all, feedback.NewRefusalProblem(diag.Refused, fmt.Sprintf("%d more proxies refuse their answers, or do not receive them", len(proxies)-i)))
		}
		listed := len(all)
		note := func(ref diag.Ref, r feedback.Refusal) {
			// A proxy may refuse several parts of its configuration in the same words.
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
		all = append(all, feedback.NewRefusalProblem(diag.Refused, fmt.Sprintf("proxy %s refuses its answers, or does not receive them: it keeps %s; its log says why",
			c.Node.ID, strings.Join(kept, ", "))))
	}
	return all
}

// problemOf returns the problem of a refusal of something that came from an object, or from
// an unknown object (the zero Ref).
func problemOf(ref diag.Ref, r feedback.Refusal) diag.Problem {
	words := r.String()
	if !r.Withheld {
		words = fmt.Sprintf("proxy %s refuses its %s, and keeps what it had instead: %s", r.Node, r.Type, r.OneLine())
	}
	p := feedback.NewRefusalProblem(diag.Refused, words)
	p.Object = ref
	return p
}

// eachRefusalOf visits everything that the streams of a proxy refuse, with the object that
// it came from. The zero Ref means that no object is known.
func (f *Fleet) eachRefusalOf(c *Client, visit func(diag.Ref, feedback.Refusal)) {
	for _, st := range append(f.streamsOf(c), f.secretStreamsOf(c)...) {
		st.EachRefusal(visit)
	}
}

// RefusingCount returns how many proxies refuse something.
func (f *Fleet) RefusingCount() int { return f.refusing.count() }
