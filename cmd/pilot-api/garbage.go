package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How much garbage may come upon what is live before it is collected: heapGrowth in
// percent, and heapRoom in bytes if that is more: where little is live, a server that
// answers thousands of requests a second would do nothing but collect.
const (
	heapGrowth = 100
	heapRoom   = 48 << 20
)

// growth is the percentage of what is live.
func growth(live uint64) int {
	return max(heapGrowth, int(100*heapRoom/max(live, 1<<20)))
}

// keepGarbageInBounds sets the bounds anew whenever the runtime has collected.
func keepGarbageInBounds() {
	debug.SetGCPercent(growth(live()))
	// What nobody holds goes with the next collection.
	runtime.AddCleanup(new([16]byte), func(struct{}) { keepGarbageInBounds() }, struct{}{})
}

// A server is at rest when it makes less than restingBytes in a restingTime.
const (
	restingTime  = 3 * time.Second
	restingBytes = 4 << 20
)

// tidyUp collects what work has left, and gives the memory back to the system, once
// whenever the server comes to rest, until ctx ends. That may take seconds on a busy
// machine and cannot be cut short: nobody is to wait for its end.
func tidyUp(ctx context.Context) {
	tick := time.NewTicker(restingTime)
	defer tick.Stop()
	var r rest
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

// rest tells work from rest.
type rest struct {
	made uint64 // in all, when it was looked at last
	busy bool   // and not tidied up since
}

// begins is told how many bytes have been made in all, each restingTime.
func (r *rest) begins(made uint64) bool {
	working := made-r.made >= restingBytes
	begins := r.busy && !working
	r.made, r.busy = made, working
	return begins
}

// live is what the last collection found to be in use, in bytes.
func live() uint64 { return sampled("/gc/heap/live:bytes") }

func sampled(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
