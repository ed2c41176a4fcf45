package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Bounds of garbage relative to the live heap: the runtime collects when garbage
// exceeds heapGrowth percent of it or heapRoom bytes, whichever is more. Without
// heapRoom, a server with a small live heap and thousands of requests a second would
// spend its time on collections.
const (
	heapGrowth = 100
	heapRoom   = 48 << 20
)

// growth returns the garbage limit as a percentage of the live heap.
func growth(live uint64) int {
	return max(heapGrowth, int(100*heapRoom/max(live, 1<<20)))
}

// keepGarbageInBounds sets the limit again after each collection.
func keepGarbageInBounds() {
	debug.SetGCPercent(growth(live()))
	// The next collection frees this unreferenced object and so runs the cleanup.
	runtime.AddCleanup(new([16]byte), func(struct{}) { keepGarbageInBounds() }, struct{}{})
}

// A server is at rest when it allocates less than restingBytes within restingTime.
const (
	restingTime  = 3 * time.Second
	restingBytes = 4 << 20
)

// tidyUp collects garbage and returns memory to the system once each time the server
// comes to rest, until ctx ends. A collection may take seconds on a busy machine and
// cannot be interrupted, so nothing should wait for tidyUp to return.
func tidyUp(ctx context.Context) {
	tick := time.NewTicker(restingTime)
	defer tick.Stop()
	var r restDetector
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if r.begins(sampled("/gc/heap/allocs:bytes")) {
			debug.FreeOSMemory()
		}
	}
}

// restDetector detects when work gives way to rest.
type restDetector struct {
	made uint64 // total bytes allocated at the last call
	busy bool   // since the last tidying
}

// begins reports whether a rest begins. It is called once every restingTime with the
// total number of bytes allocated.
func (r *restDetector) begins(made uint64) bool {
	working := made-r.made >= restingBytes
	begins := r.busy && !working
	r.made, r.busy = made, working
	return begins
}

// live returns the size of the heap that the last collection found in use, in bytes.
func live() uint64 { return sampled("/gc/heap/live:bytes") }

func sampled(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
