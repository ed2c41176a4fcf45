package admission

import (
	"container/list"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Default bounds of the connections of a server.
const (
	mostConnections = 32768
	// ownFiles is the least number of files kept free for the rest of the process: the
	// embedded etcd ends the process when it cannot open a file.
	ownFiles = 128
)

// DefaultConnections returns the default bound of connections for each of the process's
// listeners. It leaves a quarter of the permitted open files for other uses.
func DefaultConnections(listeners int) int {
	var files syscall.Rlimit // Go has raised it to the maximum.
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return mostConnections
	}
	most := min(int64(min(files.Cur, 1<<40))*3/4, int64(min(files.Cur, 1<<40))-ownFiles)
	return int(max(1, min(most/int64(listeners), mostConnections)))
}

// Connections counts the connections of an http.Server. At the bound it closes connections
// on which the server waits for a request, or for the rest of one. So a client that sends a
// byte now and then does not keep a place that others need. Make it with NewConnections. It
// is safe for concurrent use.
type Connections struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]*list.Element // nil for a connection whose request has arrived and is being answered
	waiting *list.List                 // of net.Conn, without a complete request; longest wait first
}

// NewConnections returns a bound of most connections.
func NewConnections(most int) *Connections {
	return &Connections{most: most, open: map[net.Conn]*list.Element{}, waiting: list.New()}
}

// Attach sets the hooks of a server that does not serve yet, and wraps its Handler.
func (c *Connections) Attach(srv *http.Server) {
	srv.Handler, srv.ConnState, srv.ConnContext = c.arrivals(srv.Handler), c.changed, c.named
}

// changed is the ConnState hook of an http.Server.
func (c *Connections) changed(conn net.Conn, state http.ConnState) {
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

// arrived records that a connection's request has arrived with its whole body.
func (c *Connections) arrived(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(conn)
}

// leave removes a connection from the waiting ones.
func (c *Connections) leave(conn net.Conn) {
	if at := c.open[conn]; at != nil {
		c.waiting.Remove(at)
		c.open[conn] = nil
	}
}

// makeRoom closes the connection that has waited longest. It returns false if none
// waits.
func (c *Connections) makeRoom() bool {
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

// named is the ConnContext hook of an http.Server. It stores the connection in the
// context for arrivals.
func (c *Connections) named(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// arrivals wraps a handler and records when its requests have arrived.
func (c *Connections) arrivals(next http.Handler) http.Handler {
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

// arrivingBody calls arrived when its end is read.
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
