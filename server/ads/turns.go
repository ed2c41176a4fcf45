package ads

import (
	"cmp"
	"container/list"
	"maps"
	"time"
)

// Large requests take turns. A proxy that reconnects states the versions of all its
// resources, which takes a megabyte or more in a large mesh. After a restart of the server
// all proxies do this at once. A connection with more than freeRequests of unprocessed
// requests is read only while it has a turn. The others wait on the wire, where they use no
// memory of the server. So none is evicted only because many came at once.
const (
	// turnBytes is the share of the memory for each turn: what a request of the largest
	// size takes until it is processed.
	turnBytes = 4 * maxRequest
	// turnTime is how long a turn may last while others wait. A client that sends more
	// slowly is ended.
	turnTime = 10 * time.Second
	// workTime is the same while the server works on a request of the connection. It may
	// have to compile a view first.
	workTime = time.Minute
)

// turns are the turns of a server's connections. The lock of memory guards it.
type turns struct {
	most    int
	holders map[*account]time.Time // since when
	began   map[string]int64       // number of the last turn, by host with a turn or a wait
	count   int64                  // of turns so far
	queue   *list.List             // of *waiter
}

// waiter is a connection that waits for a turn.
type waiter struct {
	account *account
	at      *list.Element
	ready   chan struct{} // closed when the wait is over
}

func newTurns(memory int64) turns {
	return turns{most: max(1, int(memory/turnBytes)), holders: map[*account]time.Time{}, began: map[string]int64{}, queue: list.New()}
}

// awaitTurn waits until the connection may be read: it has few unprocessed bytes, or a
// turn, or it must end.
func (a *account) awaitTurn() {
	wait := a.queue()
	for wait != nil {
		patience := time.NewTimer(turnTime)
		select {
		case <-wait.ready:
			wait = nil
		case <-a.over.Done():
			wait = nil // forgetLocked has taken the connection out of the queue.
		case <-patience.C:
			a.memory.endLongTurn()
		}
		patience.Stop()
	}
}

// queue returns nil if the connection may be read at once.
func (a *account) queue() *waiter {
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	t := &a.memory.turns
	if _, has := t.holders[a]; has || a.gone || a.received < freeRequests {
		return nil
	}
	if len(t.holders) < t.most {
		t.begin(a)
		return nil
	}
	a.waiting = &waiter{account: a, ready: make(chan struct{})}
	a.waiting.at = t.queue.PushBack(a.waiting)
	return a.waiting
}

// leave ends the turn of a connection, or its wait for one, and begins the next turn.
func (t *turns) leave(a *account) {
	if w := a.waiting; w != nil {
		t.end(w)
	}
	if _, has := t.holders[a]; !has {
		return
	}
	delete(t.holders, a)
	if w := t.next(); w != nil {
		t.begin(w.account)
		t.end(w)
	}
}

// next returns the waiter with the next turn, or nil if nobody waits. It is one of the
// host that has the fewest turns now. Of several such hosts, it is the one whose last turn
// began first, and of its connections the one that waits longest. So a host with many
// connections does not keep the proxies of other hosts waiting.
func (t *turns) next() (next *waiter) {
	has, waits := map[string]int{}, map[string]bool{}
	for a := range t.holders {
		has[a.host]++
	}
	before := func(a, b string) bool {
		return cmp.Or(cmp.Compare(has[a], has[b]), cmp.Compare(t.began[a], t.began[b])) < 0
	}
	for at := t.queue.Front(); at != nil; at = at.Next() {
		w := at.Value.(*waiter)
		waits[w.account.host] = true
		if next == nil || before(w.account.host, next.account.host) {
			next = w
		}
	}
	maps.DeleteFunc(t.began, func(host string, _ int64) bool { return has[host] == 0 && !waits[host] })
	return next
}

// begin begins a turn.
func (t *turns) begin(a *account) {
	t.count++
	t.holders[a], t.began[a.host] = time.Now(), t.count
}

// end ends a wait.
func (t *turns) end(w *waiter) {
	t.queue.Remove(w.at)
	w.account.waiting = nil
	close(w.ready)
}

// endLongTurn evicts the connection whose turn has lasted longest beyond its time, if
// there is one.
func (m *memory) endLongTurn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var worst *account
	var most time.Duration
	for a, since := range m.turns.holders {
		limit := turnTime
		if a.inWork > 0 {
			limit = workTime
		}
		if over := time.Since(since) - limit; over >= 0 && (worst == nil || over > most) {
			worst, most = a, over
		}
	}
	if worst != nil {
		worst.evictLocked()
	}
}
