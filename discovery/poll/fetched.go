package poll

import (
	"sync"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
)

// Fetched is what a proxy of v1 was last answered, by type.
type Fetched struct {
	mu    sync.Mutex
	views map[string]*compiled.View
	again bool // one of them a second time
}

// CameBack reports whether the proxy has fetched something again.
func (f *Fetched) CameBack() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.again
}

func (f *Fetched) Note(name string, v *compiled.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.views == nil {
		f.views = map[string]*compiled.View{}
	}
	f.again = f.again || f.views[name] != nil
	f.views[name] = v
}

// Each visits how the proxy stands with each type.
func (f *Fetched) Each(target *compiled.View, visit func(name string, s feedback.TypeStatus)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, v := range f.views {
		state := feedback.Fetched
		if v != target {
			state = feedback.Stale
		}
		visit(name, feedback.TypeStatus{State: state})
	}
}

// Oldest is the one of the views that came first, nil for none, and whether all are
// the one that they should be.
func (f *Fetched) Oldest(target *compiled.View) (oldest *compiled.View, newest bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	newest = true
	for _, v := range f.views {
		newest = newest && v == target
		if oldest == nil || v.Serial < oldest.Serial {
			oldest = v
		}
	}
	return oldest, newest
}
