package watch

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
)

// watchPermits bounds the watches at one time. At the bound, a sender that has fewer
// watches than another takes a permit of the sender that has the most. The oldest
// watch of that sender ends as at its timeout, so the client can resume it. Senders are
// users, or addresses (wire.Sender). It is safe for concurrent use.
type watchPermits struct {
	most, mostOfOne int // mostOfOne is 0 for no bound

	mu       sync.Mutex
	all      int
	bySender map[string]*list.List // permits, oldest first; no list is empty
}

// watchPermit is the permit of one watch.
type watchPermit struct {
	sender string
	at     *list.Element
	ended  chan struct{} // closed when the watch must end
}

func newWatchPermits(most, mostOfOne int) *watchPermits {
	return &watchPermits{most: most, mostOfOne: mostOfOne, bySender: map[string]*list.List{}}
}

// ShareOf returns how many of the connections may be watches. The rest is for short
// requests: health, metrics, reads, polls.
func ShareOf(connections int) int { return max(1, connections/4*3) }

// take returns a permit, or why there is none for the sender.
func (p *watchPermits) take(sender string) (*watchPermit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.bySender[sender]
	if own != nil && own.Len() == p.mostOfOne {
		return nil, fmt.Errorf("you have %d watches at one time already, the most that a user may have (--user-max-watches)", p.mostOfOne)
	}
	if p.all >= p.most && !p.makeRoomLocked(sender) {
		return nil, errors.New("too many watches are running")
	}
	if own = p.bySender[sender]; own == nil {
		own = list.New()
		p.bySender[sender] = own
	}
	permit := &watchPermit{sender: sender, ended: make(chan struct{})}
	permit.at = own.PushBack(permit)
	p.all++
	return permit, nil
}

// makeRoomLocked ends a watch of the sender that has the most, unless that sender
// would then have fewer than the one that asks.
func (p *watchPermits) makeRoomLocked(asks string) bool {
	most, greediest := 0, ""
	for sender, own := range p.bySender {
		if own.Len() > most {
			most, greediest = own.Len(), sender
		}
	}
	own := 0
	if l := p.bySender[asks]; l != nil {
		own = l.Len()
	}
	if most < own+2 {
		return false
	}
	oldest := p.bySender[greediest].Front().Value.(*watchPermit)
	p.leaveLocked(oldest)
	close(oldest.ended)
	return true
}

// leave releases a permit.
func (p *watchPermits) leave(permit *watchPermit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaveLocked(permit)
}

func (p *watchPermits) leaveLocked(permit *watchPermit) {
	if permit.at == nil {
		return
	}
	own := p.bySender[permit.sender]
	own.Remove(permit.at)
	permit.at = nil
	if p.all--; own.Len() == 0 {
		delete(p.bySender, permit.sender)
	}
}
