// Package admission bounds, in bytes, what requests in progress take together.
package admission

import "context"

// Lines are two queues for the same kind of work. One of them is for requests that
// need little, so that a small request never waits for large ones. Lines are safe for
// concurrent use.
type Lines struct {
	small, large *Room
	little       int64 // the most that is for the small line, in bytes
}

// NewLines makes lines with room for so many bytes each. Requests that need no more
// than little bytes use the small line.
func NewLines(little, room int64) *Lines { return &Lines{NewRoom(room), NewRoom(room), little} }

// Enter waits until there is room for so many bytes. A request that needs more than a
// line has gets all of the line. The caller must call release once. The error is ctx's.
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
