// Package v1 spells the IR as the JSON of Envoy's v1 REST discovery (Envoy 1.4
// to 1.8), in the very shape that Pilot 0.7.1 wrote: the types here have the
// keys of its answers, always-written ones included. One file per answer, the
// same names as in envoy/v3.
//
// All functions are pure. Order follows the IR, because a v1 Envoy takes a
// changed order for a changed object. What v1 cannot say becomes a Problem on
// the object it came from, and one that would make Envoy refuse a whole answer
// is left out of it.
package v1

import "time"

// millis rounds up: a time that is set must not turn into 0, which v1 reads as
// "none" or refuses.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
