package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

const (
	// requestLimit is when a client gives up.
	requestLimit = 5 * time.Second
	// pause between the requests of a client, at most.
	pause = 40 * time.Millisecond
)

// What is written: few objects, so that requests meet.
var (
	kinds      = []string{"RouteRule", "DestinationPolicy"}
	namespaces = []string{"a", "b"}
	names      = []string{"x", "y", "z"}
)

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

func someKey(random *rand.Rand) schema.Key {
	return schema.Key{Kind: pick(random, kinds), Namespace: pick(random, namespaces), Name: pick(random, names)}
}

// requester is one client: one request after the other, at either server.
type requester struct {
	name    string
	random  *rand.Rand
	http    *http.Client
	servers []string
	record  *record
	known   map[schema.Key]int64 // The last version seen of each object.
	count   int
}

func newRequester(name string, random *rand.Rand, servers []string, r *record) *requester {
	return &requester{
		name: name, random: random, servers: servers, record: r,
		http:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}},
		known: map[schema.Key]int64{},
	}
}

func (c *requester) run(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	for ctx.Err() == nil {
		c.one(ctx, c.draw(), c.random.IntN(len(c.servers)))
		sleep(ctx, time.Duration(c.random.Int64N(int64(pause))))
	}
}

// one performs an operation. It is not cut short by the end of the run.
func (c *requester) one(ctx context.Context, op consistency.Operation, server int) consistency.Operation {
	op.Client, op.Server = c.name, fmt.Sprintf("s%d", server)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestLimit)
	defer cancel()
	op = perform(ctx, c.http, c.servers[server], c.record, op)
	switch {
	case op.Outcome == consistency.OK && op.Verb != consistency.List:
		c.known[op.Key] = op.Revision
	case op.Outcome == consistency.Conflict || op.Outcome == consistency.NotFound:
		delete(c.known, op.Key)
	}
	return op
}

// draw is what to do next.
func (c *requester) draw() consistency.Operation {
	op := consistency.Operation{Key: someKey(c.random)}
	switch n := c.random.IntN(100); {
	case n < 20:
		op.Verb = consistency.Create
	case n < 40:
		op.Verb = consistency.Update
	case n < 55:
		op.Verb = consistency.Patch
	case n < 65:
		op.Verb = consistency.Delete
	case n < 80:
		op.Verb, op.AtLeast = consistency.Get, c.freshness()
	case n < 85:
		op.Verb, op.Exact, op.Scope = consistency.List, c.past(), c.listScope(op.Key)
		op.Key = schema.Key{}
	default:
		op.Verb, op.AtLeast, op.Scope = consistency.List, c.freshness(), c.listScope(op.Key)
		op.Key = schema.Key{}
	}
	switch op.Verb {
	case consistency.Create, consistency.Update, consistency.Patch:
		c.count++
		op.Value = fmt.Sprintf("%s-%d", c.name, c.count)
	}
	switch op.Verb {
	case consistency.Update, consistency.Patch, consistency.Delete:
		if c.random.IntN(2) == 0 {
			op.Expect = c.known[op.Key]
		}
	}
	return op
}

func (c *requester) freshness() int64 {
	switch c.random.IntN(4) {
	case 0:
		return store.Any
	case 1:
		return c.record.known.Load()
	}
	return 0
}

// past is a revision of not long ago.
func (c *requester) past() int64 {
	return max(1, c.record.known.Load()-c.random.Int64N(500))
}

func (c *requester) listScope(key schema.Key) store.Scope {
	scope := scopeOf(key)
	scope.Name = ""
	if c.random.IntN(2) == 0 {
		scope.Namespace = ""
	}
	return scope
}

// sleep is cut short by the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
