package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
)

// record is a history in progress.
type record struct {
	begin  time.Time
	known  atomic.Int64 // The newest revision that any client received.
	events atomic.Int64 // Received by watchers.

	mu         sync.Mutex
	operations []consistency.Operation
	watches    []*consistency.Watch
}

func newRecord() *record { return &record{begin: time.Now()} }

func (r *record) now() time.Duration { return time.Since(r.begin) }

func (r *record) operation(op consistency.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, op)
	r.learn(op.Revision)
}

func (r *record) learn(revision int64) {
	for {
		known := r.known.Load()
		if revision <= known || r.known.CompareAndSwap(known, revision) {
			return
		}
	}
}

func (r *record) watch(w *consistency.Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches = append(r.watches, w)
}

// size returns the number of operations.
func (r *record) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.operations)
}

// counts returns the numbers for the progress line.
func (r *record) counts() (operations, unknown, watches int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.operations {
		if r.operations[i].Outcome == consistency.Unknown {
			unknown++
		}
	}
	return len(r.operations), unknown, len(r.watches)
}
