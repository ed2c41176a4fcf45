package discovery

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
	mu  sync.Mutex
	all group
}

// note takes down whether a proxy refuses, as it is when nobody else takes it down.
func (r *refusing) note(c *client, does func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.gone.Load() || !does() {
		delete(r.all, c)
		return
	}
	if r.all == nil {
		r.all = group{}
	}
	r.all[c] = struct{}{}
}

// noteRefusing takes down whether any stream of a proxy refuses something, or its
// polls do.
func (f *fleet) noteRefusing(c *client) {
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

func (r *refusing) sorted() []*client {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*client
	for c := range r.all {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *client) int { return cmp.Compare(a.node.ID, b.node.ID) })
	return all
}

// maxRefusals bounds the proxies that are named.
const maxRefusals = 20

// refusals names the proxies that do not take what they are answered.
func (s *Publisher) refusals() diag.List {
	var all diag.List
	proxies := s.fleet.refusing.sorted()
	for i, c := range proxies {
		if i == maxRefusals {
			return append(all, feedback.NewRefusalProblem(diag.Refused, fmt.Sprintf("%d more proxies refuse what they are answered, or do not get it", len(proxies)-i)))
		}
		told := len(all)
		note := func(ref diag.Ref, r feedback.Refusal) {
			// Several parts of its configuration may be refused in the same words.
			if p := problemOf(ref, r); !slices.Contains(all[told:], p) {
				all = append(all, p)
			}
		}
		s.fleet.eachRefusalOf(c, note)
		c.handover.EachRefusal(c.node.ID, note)
		s.fleet.eachDenialOf(c, note)
		kept := c.handover.Refusals()
		if len(all) > told || len(kept) == 0 { // The latter has healed just now.
			continue
		}
		all = append(all, feedback.NewRefusalProblem(diag.Refused, fmt.Sprintf("proxy %s refuses what it is answered, or does not get it: it keeps %s; its log says why",
			c.node.ID, strings.Join(kept, ", "))))
	}
	return all
}

// problemOf is a refusal of what came from an object, the zero Ref for nobody knows which.
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
func (f *fleet) eachRefusalOf(c *client, visit func(diag.Ref, feedback.Refusal)) {
	for _, st := range f.streamsOf(c) {
		st.EachRefusal(visit)
	}
}
