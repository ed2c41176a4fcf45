package authn

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// wrongBurst and wrongPerSecond are how many wrong tokens an address may send.
	wrongBurst     = 20
	wrongPerSecond = 1
	// mostAddresses bounds the addresses that are remembered. One more makes all be
	// forgotten: an attacker with so many addresses is not slowed down by any of this.
	mostAddresses = 4096
)

// penalties slows down addresses that send wrong tokens, because to verify one costs more
// than to send one.
type penalties struct {
	now func() time.Time

	mu    sync.Mutex
	wrong map[string]*rate.Limiter
}

func newPenalties(now func() time.Time) *penalties {
	return &penalties{now: now, wrong: map[string]*rate.Limiter{}}
}

// wait returns how long an address must not send another token, 0 if it may.
func (p *penalties) wait(host string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	limiter := p.wrong[host]
	if limiter == nil || limiter.TokensAt(p.now()) >= 1 {
		return 0
	}
	return time.Second / wrongPerSecond
}

// add counts a wrong token.
func (p *penalties) add(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limiter := p.wrong[host]
	if limiter == nil {
		if len(p.wrong) >= mostAddresses {
			clear(p.wrong)
		}
		limiter = rate.NewLimiter(wrongPerSecond, wrongBurst)
		p.wrong[host] = limiter
	}
	limiter.AllowN(p.now(), 1)
}
