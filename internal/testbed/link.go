package testbed

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// Mode is what a link does with connections.
type Mode int

const (
	// Open passes everything on.
	Open Mode = iota
	// Refusing breaks connections and accepts no new ones.
	Refusing
	// Silent keeps connections and accepts new ones, but passes nothing on.
	Silent
	// Slow passes everything on, each piece after Delay.
	Slow
)

func (m Mode) String() string { return [...]string{"open", "refusing", "silent", "slow"}[m] }

// Delay is what a Slow link adds to each piece, in each direction.
const Delay = 200 * time.Millisecond

// anybody is the source of all connections without a mode of their own.
const anybody = ""

// Link is a TCP proxy that can fail.
type Link struct {
	target   string
	listener net.Listener
	source   func(first []byte) string // The source of a connection, from its first bytes; nil for none.

	mu      sync.Mutex
	changed *sync.Cond
	modes   map[string]Mode
	conns   map[*conn]bool
	closed  bool
}

type conn struct {
	source           string
	client, upstream net.Conn
}

// NewLink returns a link that listens on a free port and connects to target, which is
// host:port or unix:// and a path.
func NewLink(target string, source func([]byte) string) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := newLink(target, source)
	l.listener = listener
	go l.accept()
	return l, nil
}

func newLink(target string, source func([]byte) string) *Link {
	l := &Link{target: target, source: source, modes: map[string]Mode{}, conns: map[*conn]bool{}}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// Addr returns the address at which the link listens.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Set changes the mode for all connections whose source has none.
func (l *Link) Set(m Mode) { l.SetFor(anybody, m) }

// SetFor changes the mode for the connections of one source.
func (l *Link) SetFor(source string, m Mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.modes[source] = m
	for c := range l.conns {
		if l.mode(c) == Refusing {
			c.close()
		}
	}
	l.changed.Broadcast()
}

// Break closes all connections and accepts new ones. It returns how many it closed.
func (l *Link) Break() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.close()
	}
	return len(l.conns)
}

// Close ends the link.
func (l *Link) Close() {
	l.listener.Close()
	l.mu.Lock()
	l.closed = true
	l.changed.Broadcast()
	l.mu.Unlock()
	l.Break()
}

// mode returns the mode of a connection. The caller holds l.mu.
func (l *Link) mode(c *conn) Mode {
	if m := l.modes[anybody]; m != Open {
		return m
	}
	return l.modes[c.source]
}

// passes waits while the connection is silent, and for Delay if it is slow. It returns
// false if the connection must end.
func (l *Link) passes(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mode(c) == Slow {
		l.mu.Unlock()
		time.Sleep(Delay)
		l.mu.Lock()
	}
	for l.mode(c) == Silent && !l.closed {
		l.changed.Wait()
	}
	return l.mode(c) != Refusing && !l.closed
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.serve(client)
	}
}

func (l *Link) serve(client net.Conn) {
	c := &conn{client: client}
	defer c.close()
	var first []byte
	if l.source != nil {
		first = make([]byte, 4096)
		n, err := client.Read(first)
		if err != nil {
			return
		}
		first = first[:n]
		c.source = l.source(first)
	}
	if !l.passes(c) {
		return
	}
	upstream, err := l.dial()
	if err != nil {
		return
	}
	l.mu.Lock()
	c.upstream = upstream
	l.conns[c] = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.conns, c)
		l.mu.Unlock()
	}()
	ended := make(chan struct{}, 2)
	go l.pipe(c, upstream, io.MultiReader(bytes.NewReader(first), client), ended)
	go l.pipe(c, client, upstream, ended)
	<-ended
}

func (l *Link) dial() (net.Conn, error) {
	if path, ok := strings.CutPrefix(l.target, "unix://"); ok {
		return net.Dial("unix", path)
	}
	return net.Dial("tcp", l.target)
}

func (l *Link) pipe(c *conn, to io.Writer, from io.Reader, ended chan<- struct{}) {
	defer func() { ended <- struct{}{} }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !l.passes(c) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *conn) close() {
	c.client.Close()
	if c.upstream != nil {
		c.upstream.Close()
	}
}
