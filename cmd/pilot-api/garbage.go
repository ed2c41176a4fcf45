package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// How much garbage may come upon what is live before it is collected: heapGrowth in
// percent, and heapRoom in bytes if that is more. Large requests leave much at once,
// and most of what is live stays; but where little is live, a server that answers
// thousands of requests a second would do nothing but collect.
const (
	heapGrowth = 40
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

// live is what the last collection found to be in use, in bytes.
func live() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
