package admission

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// mostSenders bounds the senders whose use is remembered. One more makes all be forgotten.
const mostSenders = 1 << 14

// Allowance is what each sender may use in a second, such as writes or bytes. A sender may
// save up two seconds' worth. Use is counted only when it is known, so a sender may exceed
// the allowance and must then wait. A nil Allowance has no limit. It is safe for concurrent
// use.
type Allowance struct {
	perSecond int

	mu   sync.Mutex
	used map[string]*rate.Limiter
}

// NewAllowance returns an allowance of perSecond for each sender. For 0 it returns nil,
// which has no limit.
func NewAllowance(perSecond int) *Allowance {
	if perSecond <= 0 {
		return nil
	}
	return &Allowance{perSecond: perSecond, used: map[string]*rate.Limiter{}}
}

// Wait returns how long a sender must wait before the next use; 0 means that it may go on
// now.
func (a *Allowance) Wait(sender string) time.Duration {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.used[sender]
	if l == nil {
		return 0
	}
	lacks := 1 - l.Tokens()
	return max(0, time.Duration(lacks/float64(a.perSecond)*float64(time.Second)))
}

// Use adds to the use of a sender.
func (a *Allowance) Use(sender string, n int) {
	if a == nil || n <= 0 {
		return
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.used[sender]
	if l == nil {
		if len(a.used) >= mostSenders {
			clear(a.used)
		}
		l = rate.NewLimiter(rate.Limit(a.perSecond), 2*a.perSecond)
		a.used[sender] = l
	}
	for ; n > 0; n -= l.Burst() {
		l.ReserveN(now, min(n, l.Burst()))
	}
}
