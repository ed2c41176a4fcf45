package server

import (
	"container/list"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Bounds of the connections that a server takes unless it is told otherwise.
const (
	mostConnections = 32768
	// ownFiles are kept free at least, for what else the process opens: the
	// embedded etcd ends with the process when it cannot open a file.
	ownFiles = 128
)

// DefaultConnections is the bound of each of so many listeners of the process. It
// leaves a quarter of the files that may be open to others.
func DefaultConnections(listeners int) int {
	var files syscall.Rlimit // Go has raised it as far as it goes.
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return mostConnections
	}
	most := min(int64(min(files.Cur, 1<<40))*3/4, int64(min(files.Cur, 1<<40))-ownFiles)
	return int(max(1, min(most/int64(listeners), mostConnections)))
}

// connections counts those of a server and closes some at the bound: those that
// the server waits for, be it for a request or for the rest of one. Who sends a
// byte now and then holds no place that others need. It is safe for concurrent
// use.
type connections struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]*list.Element // nil for one whose request is here and being answered
	waiting *list.List                 // of net.Conn: no whole request is here; the longest first
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]*list.Element{}, waiting: list.New()}
}

// changed is an http.Server's ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(conn)
	switch state {
	case http.StateNew, http.StateActive, http.StateIdle:
		if len(c.open) >= c.most && state == http.StateNew && !c.makeRoom() {
			_ = conn.Close()
		}
		c.open[conn] = c.waiting.PushBack(conn)
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// arrived notes that the request of a connection is here, with all of its body.
func (c *connections) arrived(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(conn)
}

// leave takes a connection out of those that are waited for.
func (c *connections) leave(conn net.Conn) {
	if at := c.open[conn]; at != nil {
		c.waiting.Remove(at)
		c.open[conn] = nil
	}
}

// makeRoom closes the connection that was waited for longest, if there is one.
func (c *connections) makeRoom() bool {
	front := c.waiting.Front()
	if front == nil {
		return false
	}
	conn := c.waiting.Remove(front).(net.Conn)
	delete(c.open, conn)
	_ = conn.Close()
	return true
}

type connectionKey struct{}

// named is an http.Server's ConnContext: it tells arrivals which connection
// they are of.
func (c *connections) named(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// arrivals notes when the requests to a handler are here.
func (c *connections) arrivals(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connectionKey{}).(net.Conn)
		if r.Body == http.NoBody {
			c.arrived(conn)
		} else {
			r.Body = &arrivingBody{r.Body, func() { c.arrived(conn) }}
		}
		next.ServeHTTP(w, r)
	})
}

// arrivingBody tells when its end was read.
type arrivingBody struct {
	io.ReadCloser
	arrived func()
}

func (b *arrivingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.arrived()
	}
	return n, err
}
