package admission

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// Room is memory, in bytes, that requests share. It is safe for concurrent use.
type Room struct {
	free  *semaphore.Weighted
	bytes int64
}

// NewRoom makes room for so many bytes.
func NewRoom(bytes int64) *Room { return &Room{semaphore.NewWeighted(bytes), bytes} }

// Enter waits until there are so many bytes, and takes them. A request that needs more
// than there are in all gets all. The error is ctx's.
func (r *Room) Enter(ctx context.Context, bytes int64) (*Share, error) {
	bytes = min(bytes, r.bytes)
	if err := r.free.Acquire(ctx, bytes); err != nil {
		return nil, err
	}
	return &Share{r, bytes}, nil
}

// Share is what one request has of a Room. It is for one goroutine.
type Share struct {
	of    *Room
	bytes int64
}

// Keep gives back all but so many bytes. A share never grows.
func (s *Share) Keep(bytes int64) {
	if bytes = max(bytes, 0); bytes < s.bytes {
		s.of.free.Release(s.bytes - bytes)
		s.bytes = bytes
	}
}

// Leave gives back the rest. More calls change nothing.
func (s *Share) Leave() { s.Keep(0) }
