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

// NewRoom returns a room of bytes bytes.
func NewRoom(bytes int64) *Room { return &Room{semaphore.NewWeighted(bytes), bytes} }

// Enter waits until bytes bytes are free, and takes them. A request that needs more
// than the whole room gets all of it. The error is ctx's.
func (r *Room) Enter(ctx context.Context, bytes int64) (*Share, error) {
	bytes = min(bytes, r.bytes)
	if err := r.free.Acquire(ctx, bytes); err != nil {
		return nil, err
	}
	return &Share{r, bytes}, nil
}

// Share is a request's part of a Room. It is for one goroutine.
type Share struct {
	room  *Room
	bytes int64
}

// Keep gives back all but bytes bytes. A share never grows.
func (s *Share) Keep(bytes int64) {
	if bytes = max(bytes, 0); bytes < s.bytes {
		s.room.free.Release(s.bytes - bytes)
		s.bytes = bytes
	}
}

// Leave gives back the rest. Further calls have no effect.
func (s *Share) Leave() { s.Keep(0) }
