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
// may have told a proxy what this one is still to hear of.
type caughtUp struct {
	mu     sync.Mutex
	at     time.Time // all that was stored before is published, or was refused
	asked  time.Time
	asking bool
}

// isCaughtUp reports whether all that was stored before a time is published here, as far
// as is known; where it is not, that is found out meanwhile.
func (s *Publisher) isCaughtUp(at time.Time) bool {
	if s.opts.CatchUp == nil {
		return true
	}
	c := &s.caughtUp
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.Before(at) {
		return true
	}
	if !c.asking && time.Since(c.asked) >= catchUpPace {
		c.asking, c.asked = true, time.Now()
		go s.catchUp(c.asked)
	}
	return false
}

func (s *Publisher) catchUp(began time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), catchUpPatience)
	defer cancel()
	revision, err := s.opts.CatchUp(ctx)
	if err == nil {
		err = s.Await(ctx, revision)
	}
	s.caughtUp.mu.Lock()
	defer s.caughtUp.mu.Unlock()
	if s.caughtUp.asking = false; err == nil {
		s.caughtUp.at = began
	}
}
