package ads

import (
	"container/list"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc/peer"
)

// connections bounds the open connections of all listeners together. At the bound,
// a new one replaces the connection that has had no proxy on a stream for longest.
// If all have a proxy, the new one is closed. So a client that connects and sends
// nothing keeps no proxy out. It is safe for concurrent use.
type connections struct {
	most    int
	log     *slog.Logger
	closed  prometheus.Counter // for lack of room
	memory  *memory
	answers *answers

	mu   sync.Mutex
	open int
	idle *list.List // of *connection: without a proxy, longest first
	full bool       // whether the log has reported it
}

func (s *Server) newConnections() *connections {
	opts := s.opts
	c := &connections{most: opts.MaxConnections, log: opts.Log, idle: list.New(), memory: s.memory, answers: s.answers}
	with := promauto.With(opts.Registry)
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pilot_stream_connections",
		Help: "Connections to --grpc-listen that are open now.",
	}, func() float64 { return float64(c.count()) })
	c.closed = with.NewCounter(prometheus.CounterOpts{
		Name: "pilot_stream_connections_closed_total",
		Help: "Connections to --grpc-listen that were closed because there were as many as may be.",
	})
	return c
}

func (l *connections) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// listener accepts connections if there is room for them.
type listener struct {
	net.Listener
	*connections
	private bool // only processes that may have private keys can connect
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(conn, l.private); c != nil {
			return c, nil
		}
		_ = conn.Close()
	}
}

// admit returns nil if there is no room.
func (l *connections) admit(conn net.Conn, private bool) *connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		l.noteFull()
		if !l.makeRoom() {
			return nil
		}
	}
	c := &connection{Conn: conn, all: l, private: private, memory: l.memory.open(conn.RemoteAddr())}
	context.AfterFunc(c.memory.over, c.sayFarewell)
	l.open++
	c.idle = l.idle.PushBack(c)
	return c
}

// noteFull logs once until a tenth of the connections is free again.
func (l *connections) noteFull() {
	l.closed.Inc()
	if !l.full {
		l.log.Warn("there are as many stream connections as may be: one more takes the place of one without a proxy, or is closed", "max", l.most)
	}
	l.full = true
}

// makeRoom closes the connection that has been without a proxy for longest. It
// returns false if there is none.
func (l *connections) makeRoom() bool {
	front := l.idle.Front()
	if front == nil {
		return false
	}
	c := front.Value.(*connection)
	l.leave(c)
	c.forget()
	_ = c.Conn.Close()
	return true
}

// leave uncounts a connection, once.
func (l *connections) leave(c *connection) {
	if c.left {
		return
	}
	c.left = true
	l.open--
	c.busy()
}

// farewell is how long a client has to read why its connection ends.
const farewell = 3 * time.Second

// connection is one client's connection. The lock of connections guards the fields
// below connMemory.
type connection struct {
	net.Conn
	all    *connections
	memory *connMemory

	idle    *list.Element // nil while a proxy is on a stream
	proxies int
	left    bool
	private bool

	peerClosed atomic.Bool // the client said that it is the end
}

// sayFarewell closes the connection when its client has had time to read why.
func (c *connection) sayFarewell() {
	time.AfterFunc(farewell, func() { _ = c.Close() })
}

// Read waits while connections from this host are not read.
func (c *connection) Read(into []byte) (int, error) {
	if wait := time.Until(c.memory.rest); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.memory.over.Done():
			return 0, net.ErrClosed
		}
	}
	n, err := c.Conn.Read(into)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		c.peerClosed.Store(true)
	}
	return n, err
}

// isClosed reports whether this side has closed the connection.
func (c *connection) isClosed() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.left
}

// Close makes room for another connection.
func (c *connection) Close() error {
	c.all.mu.Lock()
	if !c.left {
		c.all.leave(c)
		c.all.full = c.all.full && c.all.open*10 > c.all.most*9
	}
	c.all.mu.Unlock()
	c.forget()
	return c.Conn.Close()
}

// forget ends the accounting of a closed connection.
func (c *connection) forget() {
	c.memory.close()
	c.all.answers.drop(c.memory)
}

// RemoteAddr returns an address from which a stream finds its connection.
func (c *connection) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

type address struct {
	net.Addr
	conn *connection
}

// connectionOf returns the connection of a stream. It is nil if the stream did not
// come through a listener of a Server.
func connectionOf(ctx context.Context) *connection {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return nil
	}
	at, _ := p.Addr.(address)
	return at.conn
}

// serving records that a proxy is on a stream until done is called.
func (c *connection) serving() (done func()) {
	c.add(1)
	return func() { c.add(-1) }
}

func (c *connection) add(proxies int) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.proxies += proxies; c.proxies > 0 {
		c.busy()
	} else if !c.left {
		c.idle = c.all.idle.PushBack(c)
	}
}

func (c *connection) busy() {
	if c.idle != nil {
		c.all.idle.Remove(c.idle)
		c.idle = nil
	}
}
