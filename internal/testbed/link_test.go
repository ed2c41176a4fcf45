package testbed

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestLink: a line goes through, waits while the link is silent, comes late when
// it is slow, and finds the connection broken when it refuses.
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
	l.Set(Open)
	if got := <-received; got != "second" {
		t.Fatalf("got %q", got)
	}
	l.Set(Slow)
	begin := time.Now()
	fmt.Fprintln(c, "third")
	if got := <-received; got != "third" || time.Since(begin) < Delay {
		t.Fatalf("got %q after %s", got, time.Since(begin))
	}
	l.Set(Refusing)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived a refusing link")
	}
}

// TestASilentLinkHandsOnNothing, not even when everything else has come to rest.
func TestASilentLinkHandsOnNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink("", nil)
		near, client := net.Pipe()
		upstream, far := net.Pipe()
		ended := make(chan struct{}, 1)
		go l.pipe(&conn{client: client, upstream: upstream}, upstream, client, ended)
		var received []string
		go func() {
			for lines := bufio.NewScanner(far); lines.Scan(); {
				received = append(received, lines.Text())
			}
		}()
		l.Set(Silent)
		fmt.Fprintln(near, "late")
		synctest.Wait()
		if len(received) > 0 {
			t.Errorf("%q came through", received)
		}
		l.Set(Open)
		synctest.Wait()
		if !slices.Equal(received, []string{"late"}) {
			t.Errorf("got %q of the link that is open again", received)
		}
		near.Close()
		<-ended
		upstream.Close()
	})
}
