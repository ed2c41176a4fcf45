package proxyauth

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneProofIsForFewNodes: an account cannot invent nodes or streams without end, and takes
// no room of others. Nodes that are gone make room.
func TestOneProofIsForFewNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(3)
		for range 5 {
			for i := range 3 {
				if err := c.see("a", fmt.Sprint("node-", i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range 10_000 {
			if err := c.see("a", fmt.Sprint("invented-", i)); !errors.Is(err, ErrForbidden) {
				t.Fatalf("node %d: %v", i, err)
			}
		}
		if n := len(c.accounts["a"].seen); n != 3 {
			t.Errorf("%d nodes are remembered", n)
		}
		if err := c.see("b", "node-1"); err != nil {
			t.Error(err)
		}
		time.Sleep(nodeAge + time.Second)
		if err := c.see("a", "node-0"); err != nil {
			t.Error(err)
		}
		if err := c.see("a", "new"); err != nil {
			t.Errorf("after the others are gone: %v", err)
		}
		var open []func()
		for range 6 {
			closed, err := c.open("a", "node-0")
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, closed)
		}
		if _, err := c.open("a", "node-0"); !errors.Is(err, ErrForbidden) {
			t.Errorf("a seventh stream: %v", err)
		}
		var secrets []func()
		for range 16 * 3 {
			closed, err := c.openSecrets("a")
			if err != nil {
				t.Fatal(err)
			}
			secrets = append(secrets, closed)
		}
		if _, err := c.openSecrets("a"); !errors.Is(err, ErrForbidden) {
			t.Errorf("a stream of secrets too many: %v", err)
		}
		secrets[0]()
		if _, err := c.openSecrets("a"); err != nil {
			t.Errorf("after one was closed: %v", err)
		}
		open[0]()
		for i := range 3 {
			if err := c.see("a", fmt.Sprint("next-", i)); (err == nil) != (i < 2) {
				t.Errorf("node %d after the stream of one has ended: %v", i, err)
			}
		}
		if _, err := c.open("a", "node-0"); err != nil {
			t.Errorf("after one was closed: %v", err)
		}
	})
}
