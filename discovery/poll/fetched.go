package poll

import (
	"cmp"
	"sync"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
)

// Fetched has the last answers to a v1 proxy, by type. Polls for endpoints name no proxy.
// Changed endpoints count as fetched when the proxy has polled the other types since the
// change, because it polls all types at the same pace.
type Fetched struct {
	mu      sync.Mutex
	answers map[string]*compiled.Polled
	again   bool // one of them a second time
}

// CameBack reports whether the proxy has fetched some type a second time.
func (f *Fetched) CameBack() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.again
}

func (f *Fetched) Note(name string, v *compiled.Polled) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answers == nil {
		f.answers = map[string]*compiled.Polled{}
	}
	f.again = f.again || f.answers[name] != nil
	f.answers[name] = v
}

// Each calls visit with the proxy's sync state for each type.
func (f *Fetched) Each(target *compiled.Polled, visit func(name string, s feedback.TypeStatus)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, v := range f.answers {
		state := feedback.Fetched
		if v != target {
			state = feedback.Stale
		}
		visit(name, feedback.TypeStatus{State: state})
	}
}

// Oldest returns the oldest of the last answers, nil for none, and reports whether all of
// them are the newest.
func (f *Fetched) Oldest(target *compiled.Polled) (oldest *compiled.Polled, newest bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	newest = true
	for _, v := range f.answers {
		newest = newest && v == target
		if oldest == nil || isBefore(v, oldest) {
			oldest = v
		}
	}
	return oldest, newest
}

func isBefore(a, b *compiled.Polled) bool {
	return cmp.Or(cmp.Compare(a.View.Serial, b.View.Serial), cmp.Compare(a.Revision, b.Revision)) < 0
}
