package discovery

import (
	"sync"
	"time"
)

// maxAcks bounds the writes that were acknowledged and are not published yet.
const maxAcks = 1024

// acks are when writes were acknowledged here, by revision, until they are published.
type acks struct {
	mu sync.Mutex
	at map[int64]time.Time
}

// Acknowledged notes that a write of that revision has just been acknowledged to its
// client. A write that is not noted counts from when the source has it.
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

// until forgets the writes up to a revision and returns the earliest of their times
// and another one, of which zero is none.
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
