package cluster

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) {
	RunMember()
	os.Exit(m.Run())
}

// TestCut: a member that is cut off cannot answer what needs the others, in
// either way of being cut off, and can again when it is healed.
func TestCut(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := StartEtcd(ctx, t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const one = 1
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Members[one].Client}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	get := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, err := client.Get(ctx, "k")
		return err
	}
	for _, mode := range []Mode{Silent, Refusing} {
		e.Cut(one, mode)
		// What was on its way when it was cut may still come through.
		if err := until(ctx, "no answer", func(context.Context) error {
			if get(2*time.Second) == nil {
				return fmt.Errorf("%s: it answers", mode)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		e.Cut(one, Open)
		if err := until(ctx, "an answer", func(context.Context) error { return get(5 * time.Second) }); err != nil {
			t.Fatalf("after %s: %v", mode, err)
		}
	}
}

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
