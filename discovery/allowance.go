package discovery

import (
	"sync"
	"time"
)

// allowance limits the time that some work may take to one part in share of all time. Up to
// most of it is saved up, and it begins with that. Work that takes longer than what is left
// makes later work wait.
type allowance struct {
	share int
	most  time.Duration

	mu     sync.Mutex
	spent  time.Duration // minus the time that has been made up for since
	stated time.Time
	began  time.Time // when the present work began, zero for no work
}

// any reports whether any time is left.
func (a *allowance) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.makeUp(now)
	return a.spent+a.goingOn(now) < a.most
}

// goingOn returns the time that the present work has taken.
func (a *allowance) goingOn(now time.Time) time.Duration {
	if a.began.IsZero() {
		return 0
	}
	return now.Sub(a.began)
}

// begin records that work begins.
func (a *allowance) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began = time.Now()
}

// spend records that the work ends, and takes off its time.
func (a *allowance) spend(since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.makeUp(now)
	a.spent += now.Sub(since)
	a.began = time.Time{}
}

func (a *allowance) makeUp(now time.Time) {
	a.spent = max(0, a.spent-now.Sub(a.stated)/time.Duration(a.share))
	a.stated = now
}
