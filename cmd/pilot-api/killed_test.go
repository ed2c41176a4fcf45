package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

var kills = flag.Int("kills", 3, "how often TestKilled kills the program; 200 is the long run")

const (
	groups    = 4  // each written by one client
	groupSize = 20 // objects that are written together
)

// group is a namespace whose objects are always written together, with one
// number.
type group struct {
	name  string
	acked int // the newest number that was acknowledged
	sent  int // the newest number that was sent
}

func (g *group) ops(t *testing.T) []store.Op {
	kind, _ := schema.KindByName("RouteRule")
	var ops []store.Op
	for i := range groupSize {
		meta := metav1.ObjectMeta{Namespace: g.name, Name: fmt.Sprintf("rule-%d", i)}
		spec := fmt.Sprintf(`{"destination":{"name":"reviews"},"precedence":%d,"route":[{"labels":{"version":"v1"}}]}`, g.sent)
		obj, err := schema.New(kind, meta, json.RawMessage(spec))
		if err != nil {
			t.Error(err)
		}
		ops = append(ops, store.Op{Verb: store.OpApply, Object: obj})
	}
	return ops
}

// write goes on until the server is gone.
func (g *group) write(ctx context.Context, t *testing.T, c *client.Client) {
	for ctx.Err() == nil {
		g.sent++
		if _, err := c.Txn(ctx, g.ops(t)); err != nil {
			return
		}
		g.acked = g.sent
	}
}

// check holds what is stored against what was acknowledged, and the history
// against what is stored.
func (g *group) check(t *testing.T, c *client.Client) {
	t.Helper()
	list, err := c.List(t.Context(), store.Scope{Namespace: g.name}, store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 && g.acked == 0 {
		return
	}
	if len(list.Items) != groupSize {
		t.Fatalf("%s: %d of %d objects", g.name, len(list.Items), groupSize)
	}
	number := precedence(t, list.Items[0])
	if number < g.acked || number > g.sent {
		t.Errorf("%s: number %d, acknowledged %d, sent %d", g.name, number, g.acked, g.sent)
	}
	for _, obj := range list.Items {
		if got := precedence(t, obj); got != number || obj.Revision() != list.Items[0].Revision() {
			t.Errorf("%s: number %d at %d beside %d at %d: half a transaction", obj.Key(), got, obj.Revision(), number, list.Items[0].Revision())
		}
		versions, err := c.History(t.Context(), obj.Key())
		if err != nil {
			t.Fatal(err)
		}
		if v := versions[0]; v.Revision != obj.Revision() || string(v.Object.JSON()) != string(obj.JSON()) {
			t.Errorf("%s: the newest version is %+v", obj.Key(), v)
		}
		var numbers []int
		for _, v := range versions {
			if v.Object == nil {
				t.Fatalf("%s: a version without an object: %+v", obj.Key(), v)
			}
			numbers = append(numbers, precedence(t, v.Object))
		}
		if want := countdown(number, len(numbers)); !slices.Equal(numbers, want) {
			t.Errorf("%s: versions %v, want %v", obj.Key(), numbers, want)
		}
	}
	g.acked, g.sent = number, number
}

func countdown(from, length int) (numbers []int) {
	for i := range length {
		numbers = append(numbers, from-i)
	}
	return numbers
}

func precedence(t *testing.T, obj *schema.Object) int {
	t.Helper()
	spec, err := obj.Spec()
	if err != nil {
		t.Fatal(err)
	}
	return int(spec.(*schema.RouteRule).Precedence)
}

// TestKilled: what was acknowledged survives kill -9 at any moment, transactions
// are there as a whole or not at all, and the history is that of the objects.
func TestKilled(t *testing.T) {
	outside.Slow(t)
	p := startProgram(t, t.TempDir())
	c, err := client.New(p.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*group, groups)
	for i := range all {
		all[i] = &group{name: fmt.Sprintf("group-%d", i)}
	}
	for range *kills {
		var running sync.WaitGroup
		for _, g := range all {
			running.Go(func() { g.write(t.Context(), t, c) })
		}
		time.Sleep(rand.N(500 * time.Millisecond)) // The moment, not an order.
		p.Kill()
		running.Wait()
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // On any machine.
		if err := p.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		for _, g := range all {
			g.check(t, c)
		}
	}
	written := 0
	for _, g := range all {
		written += g.acked
	}
	if written == 0 {
		t.Error("nothing was ever written")
	}
	t.Logf("%d transactions of %d objects, %d kills", written, groupSize, *kills)
}
