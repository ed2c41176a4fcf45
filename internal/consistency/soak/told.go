package main

import (
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/internal/consistency/programmed"
)

// told is a history of what proxies had and of what clients were told, in progress.
type told struct {
	begin time.Time

	mu      sync.Mutex
	history programmed.History
}

func newTold() *told { return &told{begin: time.Now()} }

func (t *told) now() time.Duration { return time.Since(t.begin) }

// write records a write that is about to be sent. It returns its place, for wrote.
func (t *told) write(w programmed.Write) (at int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.Call = t.now()
	t.history.Writes = append(t.history.Writes, w)
	return len(t.history.Writes) - 1
}

func (t *told) wrote(at int, outcome consistency.Outcome, revision int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.history.Writes[at]
	w.Outcome, w.Revision, w.Return = outcome, revision, t.now()
}

func (t *told) said(all ...programmed.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history.Statuses = append(t.history.Statuses, all...)
}

func (t *told) shown(all []programmed.Shown) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history.Shown = append(t.history.Shown, all...)
}

// death records that a server is about to end. The returned function records that it has
// been started again.
func (t *told) death(server int) (back func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := len(t.history.Deaths)
	t.history.Deaths = append(t.history.Deaths, programmed.Death{Server: server, At: t.now()})
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.history.Deaths[i].Back = t.now()
	}
}

// counts are the figures of a run.
type counts struct {
	writes, trues, freshTrues, shown, deaths int
}

func (t *told) counts() (c counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.history.Statuses {
		if s := &t.history.Statuses[i]; s.True {
			c.trues++
			if s.Fresh {
				c.freshTrues++
			}
		}
	}
	c.writes, c.shown, c.deaths = len(t.history.Writes), len(t.history.Shown), len(t.history.Deaths)
	return c
}
