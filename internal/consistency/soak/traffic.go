package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/schema"
)

// traffic is writers and readers that continue during all faults, and the results of
// their requests.
type traffic struct {
	server  string
	objects int
	padding string // Brings objects to the desired size.
	http    *http.Client

	mu           sync.Mutex
	acknowledged []int64 // In no order.
	newest       int64
	reads        progress
	writes       progress
	refused      string
}

// progress measures one sort of request.
type progress struct {
	done    int
	last    time.Time     // When one last succeeded, or when this began.
	longest time.Duration // Between two that succeeded.
}

func (p *progress) success() {
	now := time.Now()
	p.longest = max(p.longest, now.Sub(p.last))
	p.last = now
	p.done++
}

func newTraffic(server string, objects, size int) *traffic {
	return &traffic{
		server: server, objects: objects, padding: strings.Repeat("x", size),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}
}

func (t *traffic) key(i int) schema.Key {
	return schema.Key{Kind: "RouteRule", Namespace: "a", Name: fmt.Sprintf("o%d", i%t.objects)}
}

// collection returns the URL that watchers follow.
func (t *traffic) collection() string {
	one := scopeOf(t.key(0))
	one.Name = ""
	return t.server + path(one)
}

// fill writes until the given number of changes is acknowledged.
func (t *traffic) fill(ctx context.Context, changes int) error {
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for i := w; ctx.Err() == nil && i < changes; i += 8 {
				t.write(ctx, i)
			}
		})
	}
	group.Wait()
	if n := len(t.acknowledged); n < changes*9/10 {
		return fmt.Errorf("only %d of %d writes were acknowledged; the last refusal: %s", n, changes, t.refused)
	}
	return ctx.Err()
}

// write replaces an object, or creates it the first time.
func (t *traffic) write(ctx context.Context, i int) bool {
	op := consistency.Operation{Verb: consistency.Update, Key: t.key(i), Value: fmt.Sprintf("%d-%d-%s", i, time.Now().UnixNano(), t.padding)}
	if i < t.objects {
		op.Verb = consistency.Create
	}
	op = t.send(ctx, op)
	t.mu.Lock()
	defer t.mu.Unlock()
	if op.Outcome != consistency.OK {
		t.refused = string(op.Outcome) + op.Detail
		return false
	}
	t.acknowledged = append(t.acknowledged, op.Revision)
	t.newest = max(t.newest, op.Revision)
	t.writes.success()
	return true
}

func (t *traffic) read(ctx context.Context, i int) {
	if op := t.send(ctx, consistency.Operation{Verb: consistency.Get, Key: t.key(i)}); op.Outcome == consistency.OK {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reads.success()
	}
}

func (t *traffic) send(ctx context.Context, op consistency.Operation) consistency.Operation {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	return perform(ctx, t.http, t.server, newRecord(), op)
}

// flow writes and reads in the background until ctx ends.
func (t *traffic) flow(ctx context.Context, group *sync.WaitGroup, random *rand.Rand) {
	for range 2 {
		seed := random.Uint64()
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for ctx.Err() == nil {
				t.write(ctx, t.objects+random.IntN(t.objects))
				sleep(ctx, 20*time.Millisecond)
			}
		})
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 2))
			for ctx.Err() == nil {
				t.read(ctx, random.IntN(t.objects))
				sleep(ctx, 20*time.Millisecond)
			}
		})
	}
}

// measure restarts the measurement.
func (t *traffic) measure() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads, t.writes = progress{last: time.Now()}, progress{last: time.Now()}
}

// measured returns the measurement since measure. A pending request counts with the time
// that it has waited.
func (t *traffic) measured() (reads, writes progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	reads, writes = t.reads, t.writes
	reads.longest = max(reads.longest, time.Since(reads.last))
	writes.longest = max(writes.longest, time.Since(writes.last))
	return reads, writes
}

func (t *traffic) revision() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest
}
