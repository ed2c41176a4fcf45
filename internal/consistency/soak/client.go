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
	// pause is the maximum time between the requests of a client.
	pause = 40 * time.Millisecond
)

// The objects that are written. There are few, so that requests collide.
var (
	kinds      = []string{"RouteRule", "DestinationPolicy"}
	namespaces = []string{"a", "b"}
	names      = []string{"x", "y", "z"}
)

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

func someKey(random *rand.Rand) schema.Key {
	return schema.Key{Kind: pick(random, kinds), Namespace: pick(random, namespaces), Name: pick(random, names)}
}

// requester is one client. It sends one request at a time, to any server.
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

// one performs an operation. The end of the run does not interrupt it.
func (c *requester) one(ctx context.Context, op consistency.Operation, server int) consistency.Operation {
	op.Client, op.Server = c.name, fmt.Sprintf("s%d", server)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestLimit)
	defer cancel()
	op = perform(ctx, c.http, c.servers[server], c.record, op)
	c.learn(op)
	return op
}

// learn remembers versions.
func (c *requester) learn(op consistency.Operation) {
	switch op.Outcome {
	case consistency.OK:
		for _, s := range op.Does() {
			c.known[s.Key] = op.Revision
			if s.Verb == consistency.Delete {
				delete(c.known, s.Key)
			}
		}
	case consistency.Conflict, consistency.NotFound:
		delete(c.known, op.Does()[op.Failed].Key)
	}
}

// draw returns the next operation.
func (c *requester) draw() consistency.Operation {
	key := someKey(c.random)
	switch n := c.random.IntN(100); {
	case n < 12:
		return c.write(consistency.Create, key)
	case n < 27:
		return c.write(consistency.Update, key)
	case n < 38:
		return c.write(consistency.Patch, key)
	case n < 45:
		return c.write(consistency.Delete, key)
	case n < 60:
		return consistency.Operation{Verb: consistency.Txn, Steps: c.steps()}
	case n < 75:
		return consistency.Operation{Verb: consistency.Get, Key: key, AtLeast: c.freshness()}
	case n < 80:
		return consistency.Operation{Verb: consistency.List, Scope: c.listScope(key), Limit: c.limit(), Exact: c.past()}
	}
	return consistency.Operation{Verb: consistency.List, Scope: c.listScope(key), Limit: c.limit(), AtLeast: c.freshness()}
}

func (c *requester) write(verb consistency.Verb, key schema.Key) consistency.Operation {
	s := c.step(verb, key)
	return consistency.Operation{Verb: s.Verb, Key: s.Key, Value: s.Value, Expect: s.Expect}
}

func (c *requester) step(verb consistency.Verb, key schema.Key) consistency.Step {
	s := consistency.Step{Verb: verb, Key: key}
	if verb != consistency.Delete {
		c.count++
		s.Value = fmt.Sprintf("%s-%d", c.name, c.count)
	}
	if verb != consistency.Create && verb != consistency.Apply && c.random.IntN(2) == 0 {
		s.Expect = c.known[key]
	}
	return s
}

// steps draws a transaction's two to four steps. Most are possible as far as is known,
// and often all are in one namespace. The first has a value, which identifies the
// transaction.
func (c *requester) steps() (steps []consistency.Step) {
	first := someKey(c.random)
	together := c.random.IntN(3) > 0
	used := map[schema.Key]bool{}
	for n := 2 + c.random.IntN(3); len(steps) < n; {
		key := someKey(c.random)
		if together {
			key.Namespace = first.Namespace
		}
		if used[key] {
			continue
		}
		used[key] = true
		steps = append(steps, c.step(c.likely(key, len(steps) == 0), key))
	}
	return steps
}

// likely draws a verb that is possible for an object.
func (c *requester) likely(key schema.Key, valued bool) consistency.Verb {
	verbs := []consistency.Verb{consistency.Apply, consistency.Create}
	if c.known[key] != 0 {
		verbs = []consistency.Verb{consistency.Apply, consistency.Update, consistency.Patch, consistency.Delete}
	}
	if valued {
		verbs = verbs[:2]
	}
	return pick(c.random, verbs)
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

// past draws a recent revision.
func (c *requester) past() int64 {
	return max(1, c.record.known.Load()-c.random.Int64N(500))
}

// limit draws the page size of a list, mostly 0.
func (c *requester) limit() int {
	if c.random.IntN(3) == 0 {
		return 1 + c.random.IntN(4)
	}
	return 0
}

func (c *requester) listScope(key schema.Key) store.Scope {
	scope := scopeOf(key)
	scope.Name = ""
	if c.random.IntN(2) == 0 {
		scope.Namespace = ""
	}
	return scope
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
