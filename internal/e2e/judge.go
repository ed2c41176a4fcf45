package e2e

import (
	"fmt"
	"net/http"
	"slices"
)

// Judgements return what is wrong, or the empty text.

// share holds when about the part p of the answers is from the version, or has
// the status, within what chance allows.
func (t *Traffic) share(what string, p float64) string {
	n := t.count(func(a *Answer) bool { return version(a) == what })
	if lo, hi := bounds(len(t.Answers), p); n < lo || n > hi {
		return fmt.Sprintf("%d answers are %s, want %d to %d", n, what, lo, hi)
	}
	return ""
}

// all holds when every answer is so; should says in words what that is.
func (t *Traffic) all(should string, is func(*Answer) bool) string {
	if n := t.count(is); n < len(t.Answers) {
		return fmt.Sprintf("%d answers are not %s", len(t.Answers)-n, should)
	}
	return ""
}

// equal holds when there are exactly as many as there should be.
func (t *Traffic) equal(what string, n, want int) string {
	if n != want {
		return fmt.Sprintf("%d %s, want %d", n, what, want)
	}
	return ""
}

func firstOf(judgements ...string) string {
	for _, wrong := range judgements {
		if wrong != "" {
			return wrong
		}
	}
	return ""
}

func ok(a *Answer) bool { return a.Status == http.StatusOK }

// from holds for an answer of one of the versions.
func from(versions ...string) func(*Answer) bool {
	return func(a *Answer) bool { return slices.Contains(versions, version(a)) }
}

func caller(a *Answer) string {
	if a.asJason() {
		return "jason"
	}
	return "others"
}
