package main

import "time"

// returnTime is how long proxies may be away that had lost their server: about as
// long as an Envoy waits at most before it tries again.
const returnTime = 30 * time.Second

// absence tells proxies that are away for a moment from those that are gone: to a
// server that has just started, none of a mesh is connected.
type absence struct {
	seen  int  // proxies of the object that is looked at, while nothing was amiss
	amiss bool // nobody answered since the last look
	// until is when those that are away count as gone; zero while nothing is amiss.
	until   time.Time
	missing int // of those seen, at the last look
}

// away takes the number of a look, and reports whether more are to be waited for.
func (a *absence) away(proxies int) bool {
	now := time.Now()
	if a.amiss || proxies == 0 && a.seen > 0 && a.until.IsZero() {
		a.amiss, a.until = false, now.Add(returnTime)
	}
	if now.Before(a.until) {
		a.missing = max(a.seen-proxies, 0)
		return proxies < max(a.seen, 1)
	}
	a.seen, a.until, a.missing = proxies, time.Time{}, 0
	return false
}
