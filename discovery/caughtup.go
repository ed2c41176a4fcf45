package discovery

import (
	"context"
	"sync"
	"time"
)

const (
	// catchUpPatience is how long the source may take to catch up.
	catchUpPatience = 2 * time.Second
	// catchUpPace is how often it is asked at most, however many proxies wait.
	catchUpPace = 100 * time.Millisecond
)

// caughtUp knows up to when this replica has published all that was stored. Another one
// may have sent a proxy what this one has not got yet.
type caughtUp struct {
	mu     sync.Mutex
	at     time.Time // all that was stored before is published, or was refused
	asked  time.Time
	asking bool
}

// isCaughtUp reports whether all that was stored before a time is published here, as far
// as is known; where it is not, that is found out meanwhile.
func (p *Publisher) isCaughtUp(at time.Time) bool {
	if p.opts.CatchUp == nil {
		return true
	}
	c := &p.caughtUp
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.Before(at) {
		return true
	}
	if !c.asking && time.Since(c.asked) >= catchUpPace {
		c.asking, c.asked = true, time.Now()
		go p.catchUp(c.asked)
	}
	return false
}

func (p *Publisher) catchUp(began time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), catchUpPatience)
	defer cancel()
	revision, err := p.opts.CatchUp(ctx)
	if err == nil {
		err = p.Await(ctx, revision)
	}
	p.caughtUp.mu.Lock()
	defer p.caughtUp.mu.Unlock()
	if p.caughtUp.asking = false; err == nil {
		p.caughtUp.at = began
	}
}
