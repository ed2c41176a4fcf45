package discovery

import (
	"sync"
	"time"
)

// allowance is how much time may be spent on something: one part in share of that
// which goes by, of which at most so much is saved. It begins with that. What takes
// longer than there is left is owed.
type allowance struct {
	share int
	most  time.Duration

	mu     sync.Mutex
	spent  time.Duration // less what has been made up for since
	stated time.Time
	began  time.Time // of what is being spent on now, zero for nothing
}

// any reports whether there is some left.
func (a *allowance) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.makeUp(now)
	return a.spent+a.goingOn(now) < a.most
}

// goingOn is the time that is being spent now.
func (a *allowance) goingOn(now time.Time) time.Duration {
	if a.began.IsZero() {
		return 0
	}
	return now.Sub(a.began)
}

// begin notes that time is spent from now on.
func (a *allowance) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began = time.Now()
}

// spend takes off the time since then.
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
