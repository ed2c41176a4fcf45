package admission

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrCut reports that a body was cut to free memory for others.
var ErrCut = errors.New("the body arrives too slowly")

// Bodies is memory, in bytes, for the bodies of requests. A body takes memory as it
// arrives, so a client that announces much and sends little takes little. If no memory is
// free, Bodies cuts one of the incomplete bodies: the one that has held the most memory for
// the longest time. Bodies is safe for concurrent use.
type Bodies struct {
	mu       sync.Mutex
	free     int64
	arriving map[*Body]struct{}
	freed    chan struct{} // closed and replaced when memory is given back
}

// NewBodies returns memory of bytes bytes.
func NewBodies(bytes int64) *Bodies {
	return &Bodies{free: bytes, arriving: map[*Body]struct{}{}, freed: make(chan struct{})}
}

// Body is the memory of one body. Only one goroutine may use it.
type Body struct {
	bodies *Bodies
	bytes  int64
	began  time.Time
	stop   func()
	cut    chan struct{} // closed when the body is cut
}

// Begin returns the memory of a body that begins to arrive. If the body is cut, stop is
// called, which must end the reading soon and must not block.
func (b *Bodies) Begin(stop func()) *Body {
	body := &Body{bodies: b, began: time.Now(), stop: stop, cut: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arriving[body] = struct{}{}
	return body
}

// Grow waits for bytes more bytes. The error is ErrCut or ctx's.
func (y *Body) Grow(ctx context.Context, bytes int64) error {
	for {
		freed := y.bodies.take(y, bytes)
		if y.Cut() {
			return ErrCut
		}
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
		case <-time.After(time.Second): // Which body has held the most changes with time.
		case <-y.cut:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Cut reports whether the body was cut.
func (y *Body) Cut() bool {
	select {
	case <-y.cut:
		return true
	default:
		return false
	}
}

// Arrived records that the body is complete. From then on it cannot be cut. Arrived returns
// false if it was cut before.
func (y *Body) Arrived() bool {
	y.bodies.mu.Lock()
	defer y.bodies.mu.Unlock()
	delete(y.bodies.arriving, y)
	return !y.Cut()
}

// Leave gives back the memory. Further calls have no effect.
func (y *Body) Leave() {
	y.bodies.mu.Lock()
	defer y.bodies.mu.Unlock()
	delete(y.bodies.arriving, y)
	y.bodies.free += y.bytes
	y.bytes = 0
	close(y.bodies.freed)
	y.bodies.freed = make(chan struct{})
}

// take takes bytes bytes for a body and returns nil. If there is no room, it makes some
// and returns a channel that is closed when there may be room.
func (b *Bodies) take(y *Body, bytes int64) (freed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free >= bytes {
		b.free -= bytes
		y.bytes += bytes
		return nil
	}
	if worst := b.worst(); worst != nil && worst != y {
		close(worst.cut)
		worst.stop()
	}
	return b.freed
}

// worst returns the arriving body that has held the most for the longest. It returns
// nil if one that was cut has not left yet.
func (b *Bodies) worst() (worst *Body) {
	now, most := time.Now(), -1.0
	for body := range b.arriving {
		if body.Cut() {
			return nil
		}
		if held := float64(body.bytes) * now.Sub(body.began).Seconds(); held > most {
			worst, most = body, held
		}
	}
	return worst
}
