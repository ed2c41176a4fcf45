package cache

import (
	"context"
	"sync"
	"time"
)

const (
	// probeInterval is the time between questions to the source.
	probeInterval = time.Second
	// probeTimeout is how long the source may take to return its revision.
	probeTimeout = 2 * time.Second
)

// Probe measures how far a cache is behind its source. It asks the source for its
// revision at intervals and observes when the copy reaches it. All callers share one
// Probe, so calling Lag often costs nothing.
type Probe struct {
	cache *Cache

	mu     sync.Mutex
	asked  bool
	err    error     // of the last question
	newest int64     // the newest revision that the source returned
	target int64     // the oldest answer that the copy may not have reached
	since  time.Time // when target was asked for
}

// NewProbe returns a probe that works once Run is called.
func NewProbe(c *Cache) *Probe { return &Probe{cache: c} }

// Lag is how far a cache is behind its source.
type Lag struct {
	// Known is false until the source has been asked once.
	Known bool
	// Err is the error of the last question to the source, nil if it answered.
	Err error
	// Synced is the result of Cache.HasSynced.
	Synced bool
	// Revisions is the number of revisions from the copy to the newest one that the
	// source returned.
	Revisions int64
	// Behind is how long the copy has been known to lack a change.
	Behind time.Duration
}

// Run asks the source until ctx ends, and returns ctx's error.
func (p *Probe) Run(ctx context.Context) error {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		p.ask(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Probe) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	at := time.Now()
	newest, err := p.cache.readIndex.asked(ctx)
	if p.note(newest, err, at) {
		// The newest revisions of a source may have no changes. The source reports them
		// only when asked.
		p.cache.prompt(ctx)
	}
}

// note records an answer and reports whether the copy is behind it.
func (p *Probe) note(newest int64, err error, at time.Time) (behind bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.err = true, err
	if err != nil {
		return false
	}
	reached := p.cache.changes.Revision()
	p.newest = newest
	if reached >= p.target {
		p.target, p.since = newest, at
	}
	return reached < newest
}

// Lag returns the lag as known now.
func (p *Probe) Lag() Lag {
	p.mu.Lock()
	defer p.mu.Unlock()
	reached := p.cache.changes.Revision()
	lag := Lag{Known: p.asked, Err: p.err, Synced: p.cache.HasSynced(), Revisions: max(0, p.newest-reached)}
	if reached < p.target {
		lag.Behind = time.Since(p.since)
	}
	return lag
}
