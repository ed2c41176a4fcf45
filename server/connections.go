package server

import (
	"container/list"
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

// defaultConnections leaves a quarter of the files that may be open to others.
func defaultConnections() int {
	var files syscall.Rlimit // Go has raised it as far as it goes.
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return mostConnections
	}
	most := min(int64(min(files.Cur, 1<<40))*3/4, int64(min(files.Cur, 1<<40))-ownFiles)
	return int(max(1, min(most, mostConnections)))
}

// connections counts those of a server and closes some at the bound. It is safe
// for concurrent use.
type connections struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]*list.Element // nil for one that is being answered
	idle *list.List                 // of net.Conn, idle or silent so far, the longest first
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]*list.Element{}, idle: list.New()}
}

// changed is an http.Server's ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.open[conn]; at != nil {
		c.idle.Remove(at)
		c.open[conn] = nil
	}
	switch state {
	case http.StateNew, http.StateIdle:
		if len(c.open) >= c.most && state == http.StateNew && !c.makeRoom() {
			_ = conn.Close()
		}
		c.open[conn] = c.idle.PushBack(conn)
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// makeRoom closes the connection that was idle longest, if there is one.
func (c *connections) makeRoom() bool {
	front := c.idle.Front()
	if front == nil {
		return false
	}
	conn := c.idle.Remove(front).(net.Conn)
	delete(c.open, conn)
	_ = conn.Close()
	return true
}
