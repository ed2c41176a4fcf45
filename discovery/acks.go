package discovery

import (
	"sync"
	"time"
)

// maxAcks bounds the writes that are acknowledged and not published yet.
const maxAcks = 1024

// acks has the times at which this replica acknowledged writes, by revision, until the
// writes are published.
type acks struct {
	mu sync.Mutex
	at map[int64]time.Time
}

// Acknowledged records that a write of a revision was acknowledged to its client just now.
// The time of any other write begins when the source delivers it.
func (p *Publisher) Acknowledged(revision int64) {
	if revision <= p.Revision() {
		return
	}
	p.acks.mu.Lock()
	defer p.acks.mu.Unlock()
	if p.acks.at == nil {
		p.acks.at = map[int64]time.Time{}
	}
	if len(p.acks.at) < maxAcks {
		p.acks.at[revision] = time.Now()
	}
}

// until forgets the writes up to a revision. It returns the earliest of their times and of
// another time; zero is no time.
func (a *acks) until(revision int64, earliest time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	for written, at := range a.at {
		if written > revision {
			continue
		}
		if delete(a.at, written); earliest.IsZero() || at.Before(earliest) {
			earliest = at
		}
	}
	return earliest
}
