package e2e

import (
	"fmt"
	"net/http"
	"slices"
)

// Judgements return what is wrong, or "".

// share checks that a share p of the answers, within the limits of chance, is from the
// version or has the status.
func (t *Traffic) share(what string, p float64) string {
	n := t.count(func(a *Answer) bool { return version(a) == what })
	if lo, hi := bounds(len(t.Answers), p); n < lo || n > hi {
		return fmt.Sprintf("%d answers are %s, want %d to %d", n, what, lo, hi)
	}
	return ""
}

// all checks that is holds for every answer. should describes the requirement.
func (t *Traffic) all(should string, is func(*Answer) bool) string {
	if n := t.count(is); n < len(t.Answers) {
		return fmt.Sprintf("%d answers are not %s", len(t.Answers)-n, should)
	}
	return ""
}

// equal checks that n is want.
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

// from returns a condition that an answer is from one of the versions.
func from(versions ...string) func(*Answer) bool {
	return func(a *Answer) bool { return slices.Contains(versions, version(a)) }
}

func caller(a *Answer) string {
	if a.asJason() {
		return "jason"
	}
	return "others"
}
