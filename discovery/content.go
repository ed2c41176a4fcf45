package discovery

import (
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"weak"
)

// content is what a response says of resources. All streams that are told the same
// share it, whatever their views, and its bytes with it. It is immutable.
type content struct {
	TypeURL   string
	delta     bool
	resources []*resource
	removed   []string

	bytes brief[[]byte]
}

// same reports whether two say the same in the same order.
func (c *content) same(other *content) bool {
	return c.TypeURL == other.TypeURL && c.delta == other.delta &&
		slices.Equal(c.resources, other.resources) && slices.Equal(c.removed, other.removed)
}

// contents has those that are the same be one. It keeps none: what no stream is on
// the way to tell any more goes. It is safe for concurrent use.
type contents struct {
	seed maphash.Seed

	mu sync.Mutex
	of map[uint64]weak.Pointer[content]
}

func newContents() *contents {
	return &contents{seed: maphash.MakeSeed(), of: map[uint64]weak.Pointer[content]{}}
}

// shared is the content that others have already, or else c.
func (s *contents) shared(c *content) *content {
	key := s.hash(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.of[key].Value(); known != nil {
		if known.same(c) {
			return known
		}
		return c
	}
	s.of[key] = weak.Make(c)
	runtime.AddCleanup(c, s.drop, key)
	return c
}

func (s *contents) hash(c *content) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	maphash.WriteComparable(&h, c.delta)
	maphash.WriteComparable(&h, c.TypeURL)
	for _, r := range c.resources {
		maphash.WriteComparable(&h, r)
	}
	for _, name := range c.removed {
		maphash.WriteComparable(&h, name)
	}
	return h.Sum64()
}

// drop forgets one that is gone, unless another has taken its place.
func (s *contents) drop(key uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[key].Value() == nil {
		delete(s.of, key)
	}
}

func (s *contents) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of)
}
