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

import (
	"regexp"
	"time"

	"github.com/pilot-api/pilot-api/ir"
)

// millis rounds up: a time that is set must not turn into 0, which v1 reads as
// "none" or refuses.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// HeaderMatch is a condition on a header; without value, that it is present.
type HeaderMatch struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	Regex bool   `json:"regex,omitempty"`
}

func headerMatches(matches []ir.HeaderMatch) []HeaderMatch {
	var out []HeaderMatch
	for _, m := range matches {
		out = append(out, headerMatch(m))
	}
	return out
}

func headerMatch(m ir.HeaderMatch) HeaderMatch {
	switch {
	case m.Present:
		return HeaderMatch{Name: m.Name}
	case m.Regex != "":
		return HeaderMatch{Name: m.Name, Value: m.Regex, Regex: true}
	case m.Prefix != "":
		return HeaderMatch{Name: m.Name, Value: "^" + regexp.QuoteMeta(m.Prefix) + ".*", Regex: true}
	case m.Exact != "":
		return HeaderMatch{Name: m.Name, Value: m.Exact}
	default:
		// An empty value would ask for presence.
		return HeaderMatch{Name: m.Name, Value: "^$", Regex: true}
	}
}
