package admission

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// ErrQueueFull reports that too many requests wait: a sender has reached its own limit, or
// all senders together have reached theirs and this one has the most.
var ErrQueueFull = errors.New("too many requests are waiting")

// ErrImpatient reports that a request has waited for its seat for the maximum time.
var ErrImpatient = errors.New("the request has waited too long")

// ClassOptions are the bounds of a Class. All must be above 0.
type ClassOptions struct {
	Seats     int           // requests in progress at one time
	PerSender int           // most weight of the requests in progress of one sender while there are others
	Rest      time.Duration // minimum time for which a seat stays empty after a request of a sender with the maximum of seats; 0 for none
	Queue     int           // requests of one sender that may wait
	Waiting   int           // requests of all senders that may wait
	Patience  time.Duration // longest time that a request waits
}

// Class admits the requests of one class. If no seat is free, a request waits in the queue
// of its sender, and senders are served in rotation. So a sender with one request waits for at most one
// request of each other sender, however many they have. A sender that was alone for
// aloneAfter may have all seats. If too many requests wait, Class refuses the newest
// request of the sender with the longest queue. Class is safe for concurrent use.
type Class struct {
	opts ClassOptions

	mu      sync.Mutex
	free    int
	waiting int
	last    string             // sender of the last request
	mixed   time.Time          // when a request came from another sender than the one before
	senders map[string]*sender // with a seat or a request that waits
	ready   *list.List         // of *sender: those that wait and may have another seat
}

// aloneAfter is how long after a request of another sender a sender counts as alone.
const aloneAfter = time.Second

// mostRest is the longest time that a seat stays empty.
const mostRest = 20 * time.Millisecond

// sender is one sender of requests.
type sender struct {
	name   string
	seated int           // requests
	weight int           // of these requests
	queue  *list.List    // of *ticket, oldest first
	ready  *list.Element // nil if it is not in ready
}

// ticket is a request that waits.
type ticket struct {
	called chan error // receives nil with the seat, or why there is none
	weight int
	at     *list.Element
}

// NewClass returns a class without requests.
func NewClass(opts ClassOptions) *Class {
	return &Class{opts: opts, free: opts.Seats, senders: map[string]*sender{}, ready: list.New()}
}

// Enter waits for a seat for a request with a weight, of at least 1. A heavy request has one seat,
// and counts as several of its sender. The caller must call leave; further calls have no effect. leave
// is for one goroutine. The error is ErrQueueFull, ErrImpatient or ctx's.
func (c *Class) Enter(ctx context.Context, name string, weight int) (leave func(), err error) {
	s, waits, err := c.arrive(name, weight)
	if err != nil {
		return nil, err
	}
	if waits != nil {
		if err := c.wait(ctx, s, waits); err != nil {
			return nil, err
		}
	}
	left, began := false, time.Now()
	return func() {
		if !left {
			left = true
			c.leave(s, weight, time.Since(began))
		}
	}, nil
}

// Load returns how many requests have a seat, and how many wait.
func (c *Class) Load() (seated, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opts.Seats - c.free, c.waiting
}

// arrive gives a request its seat, or a ticket if it must wait.
func (c *Class) arrive(name string, weight int) (*sender, *ticket, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.senders[name]
	if s == nil {
		s = &sender{name: name, queue: list.New()}
		c.senders[name] = s
	}
	if name != c.last {
		if c.last != "" {
			c.mixed = time.Now()
		}
		c.last = name
	}
	if c.free > 0 && s.queue.Len() == 0 && c.mayHaveAnother(s, weight) {
		c.free--
		s.seated++
		s.weight += weight
		return s, nil, nil
	}
	if s.queue.Len() >= c.opts.Queue || c.waiting >= c.opts.Waiting && !c.refuseLongest(s) {
		c.forget(s)
		return nil, nil, ErrQueueFull
	}
	t := &ticket{called: make(chan error, 1), weight: weight}
	t.at = s.queue.PushBack(t)
	c.waiting++
	c.line(s)
	return s, t, nil
}

// refuseLongest refuses the newest request of the sender with the longest queue. It returns
// false if no other sender has more than the one that asks.
func (c *Class) refuseLongest(asks *sender) bool {
	longest := asks
	for _, s := range c.senders {
		if s.queue.Len() > longest.queue.Len() {
			longest = s
		}
	}
	if longest == asks {
		return false
	}
	c.take(longest, longest.queue.Back()).called <- ErrQueueFull
	return true
}

func (c *Class) wait(ctx context.Context, s *sender, t *ticket) error {
	patience := time.NewTimer(c.opts.Patience)
	defer patience.Stop()
	select {
	case err := <-t.called:
		return err
	case <-patience.C:
		return c.giveUp(s, t, ErrImpatient)
	case <-ctx.Done():
		return c.giveUp(s, t, ctx.Err())
	}
}

// giveUp takes a request out of its queue. If it was called meanwhile, its seat goes to
// the next one.
func (c *Class) giveUp(s *sender, t *ticket, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case called := <-t.called:
		if called == nil {
			c.leaveLocked(s, t.weight)
		}
	default:
		c.take(s, t.at)
		c.forget(s)
	}
	return err
}

// take takes a request out of its queue.
func (c *Class) take(s *sender, at *list.Element) *ticket {
	c.waiting--
	t := s.queue.Remove(at).(*ticket)
	c.line(s)
	return t
}

// line puts a sender in the line for the next seats, or out of it.
func (c *Class) line(s *sender) {
	switch may := s.queue.Len() > 0 && c.mayHaveAnother(s, s.next().weight); {
	case may && s.ready == nil:
		s.ready = c.ready.PushBack(s)
	case !may && s.ready != nil:
		c.ready.Remove(s.ready)
		s.ready = nil
	}
}

// next returns the oldest request that waits.
func (s *sender) next() *ticket { return s.queue.Front().Value.(*ticket) }

// mayHaveAnother reports whether a sender may have a seat for one more request of a weight. It
// may always have one.
func (c *Class) mayHaveAnother(s *sender, weight int) bool {
	return s.seated == 0 || s.weight+weight <= c.opts.PerSender || c.isAlone()
}

// isAlone reports whether all requests were of one sender for a while.
func (c *Class) isAlone() bool { return len(c.senders) == 1 && time.Since(c.mixed) > aloneAfter }

// forget drops a sender without requests.
func (c *Class) forget(s *sender) {
	if s.seated == 0 && s.queue.Len() == 0 {
		delete(c.senders, s.name)
	}
}

// leave frees the seat of a request that took some time. A sender that has its most of
// seats leaves it empty for as long first, so that the processors and the disk are not
// always busy with it.
func (c *Class) leave(s *sender, weight int, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opts.Rest == 0 || s.weight+weight <= c.opts.PerSender || c.isAlone() {
		c.leaveLocked(s, weight)
		return
	}
	time.AfterFunc(min(max(took, c.opts.Rest), mostRest), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leaveLocked(s, weight)
	})
}

// leaveLocked frees a seat and gives the free seats to the senders that are ready.
func (c *Class) leaveLocked(s *sender, weight int) {
	c.free++
	s.seated--
	s.weight -= weight
	c.line(s)
	for c.free > 0 && c.ready.Len() > 0 {
		next := c.ready.Front().Value.(*sender)
		if !c.mayHaveAnother(next, next.next().weight) { // It was alone when it got in line.
			c.line(next)
			continue
		}
		c.free--
		next.seated++
		t := next.next()
		next.weight += t.weight
		c.take(next, t.at)
		if next.ready != nil {
			c.ready.MoveToBack(next.ready)
		}
		t.called <- nil
	}
	c.forget(s)
}
