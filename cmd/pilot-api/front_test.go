package main

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

// front passes connections on to an etcd. Paused, it holds everything back
// without a word, as a member does that is stopped or cut off.
type front struct {
	addr   string
	member string

	mu   sync.Mutex
	gate *sync.Cond
	held bool
}

func newFront(t *testing.T, member *etcdtest.Server) *front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{addr: l.Addr().String(), member: strings.TrimPrefix(member.Endpoint(), "unix://")}
	f.gate = sync.NewCond(&f.mu)
	t.Cleanup(func() {
		f.resume()
		l.Close()
	})
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(from)
		}
	}()
	return f
}

func (f *front) serve(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("unix", f.member)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		defer from.Close()
		_, _ = io.Copy(from, held{to, f})
	}()
	_, _ = io.Copy(to, held{from, f})
}

func (f *front) pause()  { f.set(true) }
func (f *front) resume() { f.set(false) }

func (f *front) set(paused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = paused
	f.gate.Broadcast()
}

// held gives what it reads when the front is not paused.
type held struct {
	io.Reader
	front *front
}

func (h held) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.front.mu.Lock()
	defer h.front.mu.Unlock()
	for h.front.held {
		h.front.gate.Wait()
	}
	return n, err
}
