// Package admission bounds what all requests in progress may take: connections, memory in
// bytes, and time. It does not check objects: package schema does, and package objects
// sends the warnings.
//
//	connections.go  connections of an HTTP server
//	class.go        seats for requests of one class, shared by their senders
//	allowance.go    what one sender may use in a second
//	room.go         memory that requests share, and lines.go: two queues for it
//	bodies.go       memory for bodies while they arrive
//	long.go         turns for work that keeps a processor busy
package admission

import "context"

// Lines are two queues for the same kind of work. One is for requests that need
// little, so that a small request never waits for large ones. Lines are safe for
// concurrent use.
type Lines struct {
	small, large *Room
	little       int64 // most that a request of the small line needs, in bytes
}

// NewLines returns lines with room for room bytes each. Requests that need at most
// little bytes use the small line.
func NewLines(little, room int64) *Lines { return &Lines{NewRoom(room), NewRoom(room), little} }

// Enter waits until a line has room for bytes bytes. A request that needs more than the
// whole line gets all of it. The caller must call release once. The error is ctx's.
func (l *Lines) Enter(ctx context.Context, bytes int64) (release func(), err error) {
	line := l.large
	if bytes <= l.little {
		line = l.small
	}
	share, err := line.Enter(ctx, bytes)
	if err != nil {
		return nil, err
	}
	return share.Leave, nil
}
