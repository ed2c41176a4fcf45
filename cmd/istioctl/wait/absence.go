package wait

import "time"

// returnTime is how long proxies that lost their server may be away. It is about the
// longest time that an Envoy waits before it retries.
const returnTime = 30 * time.Second

// absence distinguishes proxies that are away for a moment from those that are gone. A
// server that has just started has no connected proxies.
type absence struct {
	seen  int  // proxies of the current object before the absence
	amiss bool // a request failed since the last look
	// until is when absent proxies count as gone. It is zero if none are away.
	until   time.Time
	missing int // of those seen, at the last look
}

// away takes the current number of proxies, and reports whether to wait for more.
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
