package cache

import (
	"context"
	"sync"
	"time"
)

const (
	// probeInterval is how often a probe asks.
	probeInterval = time.Second
	// probeTimeout is how long the source may take to tell its revision.
	probeTimeout = 2 * time.Second
)

// Probe finds out how far a cache is behind its source: it asks the source for
// its revision again and again, and sees when the view gets there. It is one for
// all who want to know, so that asking often costs nothing.
type Probe struct {
	cache *Cache

	mu     sync.Mutex
	asked  bool
	err    error     // of the last question
	newest int64     // that the source has told
	target int64     // the oldest answer that the view may not have reached
	since  time.Time // when target was asked for
}

// NewProbe makes a probe; Run lets it work.
func NewProbe(c *Cache) *Probe { return &Probe{cache: c} }

// Lag is how far a cache is behind its source.
type Lag struct {
	// Known is false until the source has been asked once.
	Known bool
	// Err is why the source did not tell its revision when asked last.
	Err error
	// Synced is Cache.HasSynced.
	Synced bool
	// Revisions lie between the view and the newest that the source told.
	Revisions int64
	// Behind is how long the view has been known to lack a change.
	Behind time.Duration
}

// Run asks until ctx ends, and returns its error.
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
		// A source may have nothing to tell about its newest revisions, and
		// says so only when asked.
		p.cache.prompt(ctx)
	}
}

// note takes in an answer, and reports whether the view is behind it.
func (p *Probe) note(newest int64, err error, at time.Time) (behind bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.err = true, err
	if err != nil {
		return false
	}
	view := p.cache.changes.Revision()
	p.newest = newest
	if view >= p.target {
		p.target, p.since = newest, at
	}
	return view < newest
}

// Lag is what is known now.
func (p *Probe) Lag() Lag {
	p.mu.Lock()
	defer p.mu.Unlock()
	view := p.cache.changes.Revision()
	lag := Lag{Known: p.asked, Err: p.err, Synced: p.cache.HasSynced(), Revisions: max(0, p.newest-view)}
	if view < p.target {
		lag.Behind = time.Since(p.since)
	}
	return lag
}
