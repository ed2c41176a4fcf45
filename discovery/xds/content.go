package xds

import (
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/pilot-api/pilot-api/discovery/cached"
)

// Content has the resources of a response. All streams that are sent the same resources
// share it and its bytes, whatever their views. It is immutable.
type Content struct {
	TypeURL   string
	Delta     bool
	Resources []*Resource
	Removed   []string
	// Complete are the names that an Envoy asked for, of virtual hosts that its route tables
	// have by now if they exist.
	Complete []string

	bytes cached.Brief[[]byte]
}

// same reports whether two contents are equal, in the same order.
func (c *Content) same(other *Content) bool {
	return c.TypeURL == other.TypeURL && c.Delta == other.Delta &&
		slices.Equal(c.Resources, other.Resources) && slices.Equal(c.Removed, other.Removed) && slices.Equal(c.Complete, other.Complete)
}

// Contents finds equal contents, so that streams share one. It holds only weak references:
// a content is freed when no stream sends it any more. It is safe for concurrent use.
type Contents struct {
	seed maphash.Seed

	mu     sync.Mutex
	byHash map[uint64]weak.Pointer[Content]
}

func NewContents() *Contents {
	return &Contents{seed: maphash.MakeSeed(), byHash: map[uint64]weak.Pointer[Content]{}}
}

// Shared returns an equal content that is in use, or c if there is none.
func (s *Contents) Shared(c *Content) *Content {
	key := s.hash(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byHash[key].Value(); known != nil {
		if known.same(c) {
			return known
		}
		return c
	}
	s.byHash[key] = weak.Make(c)
	runtime.AddCleanup(c, s.drop, key)
	return c
}

func (s *Contents) hash(c *Content) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	maphash.WriteComparable(&h, c.Delta)
	maphash.WriteComparable(&h, c.TypeURL)
	for _, r := range c.Resources {
		maphash.WriteComparable(&h, r)
	}
	for _, name := range c.Removed {
		maphash.WriteComparable(&h, name)
	}
	for _, name := range c.Complete {
		maphash.WriteComparable(&h, name)
	}
	return h.Sum64()
}

// drop forgets a content that is gone, unless another one has replaced it.
func (s *Contents) drop(key uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byHash[key].Value() == nil {
		delete(s.byHash, key)
	}
}

func (s *Contents) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byHash)
}
