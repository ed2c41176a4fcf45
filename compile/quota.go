package compile

import (
	"sync"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/mesh"
)

// Quota bounds the memory of several compilers together: the number of their results, and
// the memory of meshes other than the present one. It is safe for concurrent use.
type Quota struct {
	*query.Quota
	room room
}

// NewQuota returns a Quota that allows the given number of results; 0 means no
// bound. The budget of the present mesh bounds the other meshes.
func NewQuota(most int) *Quota { return &Quota{Quota: query.NewQuota(most)} }

// Short reports whether the other meshes use more memory than the present one leaves to
// them, for example after it has grown.
func (q *Quota) Short() bool { return q.room.isShort() }

// A part takes about 14 KiB if eleven kinds of proxies receive it. This includes the data
// that all of them share, and the data that each adds.
const (
	sharedKiB  = 3
	viewKiB    = 1
	wholeViews = 11
)

// kibOf returns what a mesh takes for some views, in KiB. Further views share
// almost everything with these.
func kibOf(parts, views int) int {
	if views == 0 {
		return 0
	}
	return parts * (sharedKiB + viewKiB*min(views, wholeViews))
}

// room is the memory, in KiB, for meshes beside the present one: that of the parts
// which the budget allows and the present mesh does not have. Results do not measure it:
// one of them may be a number or a table of long texts.
type room struct {
	mu      sync.Mutex
	bounded bool // there is a present mesh
	free    int  // what it leaves
	used    int
}

// setPresent takes the parts of the present mesh. ServiceEntries and all other objects
// have a budget of b.Mesh parts each.
func (r *room) setPresent(parts int, b mesh.Budget) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bounded, r.free = true, kibOf(max(0, 2*b.Mesh-parts), wholeViews)
}

func (r *room) isShort() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bounded && r.used > r.free
}

// stake is what one compiler takes of a room.
type stake struct {
	room *room

	// The lock of the room guards these fields.
	parts, views int
}

// grow sets the parts of the mesh, whether or not there is room for its views.
func (s *stake) grow(parts int) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.set(parts, s.views)
}

// hold sets the number of views, and reports whether there is room for them. If not,
// the caller must drop one, and call hold again.
func (s *stake) hold(views int) bool {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.set(s.parts, views)
	return !s.room.bounded || s.room.used <= s.room.free
}

// end gives everything back.
func (s *stake) end() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.set(0, 0)
}

func (s *stake) set(parts, views int) {
	s.room.used += kibOf(parts, views) - kibOf(s.parts, s.views)
	s.parts, s.views = parts, views
}
