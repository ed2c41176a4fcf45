package discovery

import (
	"context"
	"sync"
	"time"
)

const (
	// catchUpPatience is how long the source may take to catch up.
	catchUpPatience = 2 * time.Second
	// catchUpPace is the shortest time between two questions to the source, however many
	// proxies wait.
	catchUpPace = 100 * time.Millisecond
)

// caughtUp knows until when this replica has published everything that was stored. Another
// replica may have sent a proxy something newer.
type caughtUp struct {
	mu     sync.Mutex
	at     time.Time // everything stored before this time is published, or was refused
	asked  time.Time
	asking bool
}

// isCaughtUp reports whether everything that was stored before a time is known to be
// published here. If that is not known, it begins to find out.
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
