package testbed

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"
)

// TestLink: a line goes through, waits while the link is silent, and finds the
// connection broken when it refuses.
func TestLink(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	received := make(chan string)
	go func() {
		for {
			c, err := target.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					received <- lines.Text()
				}
			}()
		}
	}()
	l, err := NewLink(target.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintln(c, "first")
	if got := <-received; got != "first" {
		t.Fatalf("got %q", got)
	}
	l.Set(Silent)
	fmt.Fprintln(c, "second")
	select {
	case got := <-received:
		t.Fatalf("%q came through a silent link", got)
	case <-time.After(50 * time.Millisecond): // Long enough to see a link that is not silent.
	}
	l.Set(Open)
	if got := <-received; got != "second" {
		t.Fatalf("got %q", got)
	}
	l.Set(Refusing)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived a refusing link")
	}
}
