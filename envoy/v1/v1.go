// Package v1 encodes the IR as the JSON of Envoy's v1 REST discovery (Envoy 1.4 to 1.8),
// exactly in the form of Pilot 0.7.1: the types have the keys of its answers, including
// those that are always written. There is one file for each answer, with the same names
// as in envoy/v3.
//
// All functions are pure. The order is that of the IR, because a v1 Envoy treats a
// changed order as a changed object. A part that v1 cannot express becomes a Problem of
// the object from which it follows. If it would make Envoy refuse a whole answer, it is
// left out.
package v1

import "time"

// millis returns a duration in milliseconds, rounded up: a time that is set must not
// become 0, which v1 refuses or reads as "none".
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
