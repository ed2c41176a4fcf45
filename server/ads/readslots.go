package ads

import (
	"cmp"
	"container/list"
	"maps"
	"time"
)

// Large requests need a read slot. A proxy that reconnects states the versions of all its
// resources, which takes a megabyte or more in a large mesh. After a restart of the server
// all proxies do this at once. A connection with more than freeRequests of unprocessed
// requests is read only while it has a slot. The others wait on the wire, where they use no
// memory of the server. So none is evicted only because many came at once.
const (
	// slotBytes is the share of the memory for each slot: what a request of the largest
	// size takes until it is processed.
	slotBytes = 4 * maxRequest
	// slotTime is how long a connection may have a slot while others wait. A client that sends more
	// slowly is ended.
	slotTime = 10 * time.Second
	// workTime is the same while the server works on a request of the connection. It may
	// have to compile a view first.
	workTime = time.Minute
)

// readSlots are the slots of a server's connections. The lock of memory guards it.
type readSlots struct {
	most    int
	holders map[*connMemory]time.Time // since when
	began   map[string]int64          // number of the last slot given, by host with a slot or a wait
	count   int64                     // of slots given so far
	queue   *list.List                // of *waiter
}

// waiter is a connection that waits for a slot.
type waiter struct {
	conn  *connMemory
	at    *list.Element
	ready chan struct{} // closed when the wait is over
}

func newReadSlots(memory int64) readSlots {
	return readSlots{most: max(1, int(memory/slotBytes)), holders: map[*connMemory]time.Time{}, began: map[string]int64{}, queue: list.New()}
}

// awaitSlot waits until the connection may be read: it has few unprocessed bytes, or a
// slot, or it must end.
func (c *connMemory) awaitSlot() {
	wait := c.queue()
	for wait != nil {
		patience := time.NewTimer(slotTime)
		select {
		case <-wait.ready:
			wait = nil
		case <-c.over.Done():
			wait = nil // forgetLocked has taken the connection out of the queue.
		case <-patience.C:
			c.memory.endSlowest()
		}
		patience.Stop()
	}
}

// queue returns nil if the connection may be read at once.
func (c *connMemory) queue() *waiter {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	t := &c.memory.readSlots
	if _, has := t.holders[c]; has || c.gone || c.received < freeRequests {
		return nil
	}
	if len(t.holders) < t.most {
		t.begin(c)
		return nil
	}
	c.waiting = &waiter{conn: c, ready: make(chan struct{})}
	c.waiting.at = t.queue.PushBack(c.waiting)
	return c.waiting
}

// leave frees the slot of a connection, or ends its wait for one, and gives the slot to the next.
func (t *readSlots) leave(c *connMemory) {
	if w := c.waiting; w != nil {
		t.end(w)
	}
	if _, has := t.holders[c]; !has {
		return
	}
	delete(t.holders, c)
	if w := t.next(); w != nil {
		t.begin(w.conn)
		t.end(w)
	}
}

// next returns the waiter for the next slot, or nil if nobody waits. It is one of the
// host that has the fewest slots now. Of several such hosts, it is the one whose last slot
// was given first, and of its connections the one that waits longest. So a host with many
// connections does not keep the proxies of other hosts waiting.
func (t *readSlots) next() (next *waiter) {
	has, waits := map[string]int{}, map[string]bool{}
	for c := range t.holders {
		has[c.host]++
	}
	before := func(a, b string) bool {
		return cmp.Or(cmp.Compare(has[a], has[b]), cmp.Compare(t.began[a], t.began[b])) < 0
	}
	for at := t.queue.Front(); at != nil; at = at.Next() {
		w := at.Value.(*waiter)
		waits[w.conn.host] = true
		if next == nil || before(w.conn.host, next.conn.host) {
			next = w
		}
	}
	maps.DeleteFunc(t.began, func(host string, _ int64) bool { return has[host] == 0 && !waits[host] })
	return next
}

// begin gives a slot.
func (t *readSlots) begin(c *connMemory) {
	t.count++
	t.holders[c], t.began[c.host] = time.Now(), t.count
}

// end ends a wait.
func (t *readSlots) end(w *waiter) {
	t.queue.Remove(w.at)
	w.conn.waiting = nil
	close(w.ready)
}

// endSlowest evicts the connection that has had a slot for longest beyond its time, if
// there is one.
func (m *memory) endSlowest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var worst *connMemory
	var most time.Duration
	for c, since := range m.readSlots.holders {
		limit := slotTime
		if c.inWork > 0 {
			limit = workTime
		}
		if over := time.Since(since) - limit; over >= 0 && (worst == nil || over > most) {
			worst, most = c, over
		}
	}
	if worst != nil {
		worst.evictLocked()
	}
}
