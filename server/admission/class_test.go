package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// newClass returns a class in which no sender is alone yet.
func newClass() *Class {
	c := NewClass(ClassOptions{Seats: 4, PerSender: 3, Queue: 8, Waiting: 12, Patience: time.Minute})
	for _, name := range []string{"first", "second"} {
		if leave, err := c.Enter(context.Background(), name, 1); err == nil {
			leave()
		}
	}
	return c
}

// TestSendersTakeTurns: a sender with one request waits for one request of each other
// sender, however many those have.
func TestSendersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClass(ClassOptions{Seats: 1, PerSender: 1, Queue: 100, Waiting: 1000, Patience: time.Hour})
		var order []string
		ask := func(name string) {
			go func() {
				leave, err := c.Enter(t.Context(), name, 1)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, name)
				time.Sleep(time.Millisecond)
				leave()
			}()
			synctest.Wait()
		}
		for range 20 {
			ask("greedy")
		}
		ask("polite")
		ask("other")
		for range 3 {
			ask("greedy")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for _, name := range []string{"polite", "other"} {
			if !slices.Contains(order[:4], name) {
				t.Errorf("%s is not among the first four: %v", name, order)
			}
		}
		if len(order) != 25 {
			t.Errorf("%d requests had a seat, want 25", len(order))
		}
	})
}

// TestASenderLeavesSeatsToOthers, even if its requests never end.
func TestASenderLeavesSeatsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClass()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 8 {
			go func() { _, _ = c.Enter(ctx, "stuck", 1) }()
		}
		synctest.Wait()
		leave, err := c.Enter(ctx, "other", 1)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		if seated, waiting := c.Load(); seated != 3 || waiting != 5 {
			t.Errorf("%d seated and %d waiting, want 3 and 5", seated, waiting)
		}
		cancel()
	})
}

// TestHeavyRequestsCountAsSeveral: a sender has fewer of them at one time, at least one, and
// others have as many seats as before.
func TestHeavyRequestsCountAsSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		for weight, want := range map[int]int{1: 3, 2: 1, 3: 1, 5: 1} {
			c := newClass()
			for range 8 {
				go func() { _, _ = c.Enter(ctx, "heavy", weight) }()
			}
			synctest.Wait()
			if seated, _ := c.Load(); seated != want {
				t.Errorf("%d requests of weight %d are in progress, want %d", seated, weight, want)
			}
			for i := range 4 - want {
				if _, err := c.Enter(ctx, fmt.Sprint("light-", i), 1); err != nil {
					t.Error(err)
				}
			}
		}
		cancel()
	})
}

// TestASenderAloneMayHaveAllSeats, until another one comes.
func TestASenderAloneMayHaveAllSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClass()
		enter := func(name string) func() {
			leave, err := c.Enter(t.Context(), name, 1)
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		enter("other")()
		time.Sleep(2 * aloneAfter)
		enter("alone")()
		time.Sleep(2 * aloneAfter)
		var leaves []func()
		for range 4 {
			leaves = append(leaves, enter("alone"))
		}
		go func() { enter("alone")() }()
		go func() { enter("other")() }()
		synctest.Wait()
		leaves[0]()
		synctest.Wait()
		if seated, waiting := c.Load(); seated != 3 || waiting != 1 {
			t.Errorf("%d seated and %d waiting, want 3 and 1: the other one is through, and the seats beyond three are for others", seated, waiting)
		}
		for _, leave := range leaves[1:] {
			leave()
		}
	})
}

// TestTheLongestQueueIsRefused: if too many wait, the request that is refused is not one of
// a sender with few.
func TestTheLongestQueueIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClass()
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 100)
		ask := func(name string) {
			go func() {
				_, err := c.Enter(ctx, name, 1)
				results <- err
			}()
			synctest.Wait()
		}
		for range 11 { // Three have a seat.
			ask("greedy")
		}
		if _, err := c.Enter(ctx, "greedy", 1); !errors.Is(err, ErrQueueFull) {
			t.Errorf("the queue of one sender is full: %v", err)
		}
		for i := range 6 { // The first has a seat.
			ask(fmt.Sprint("other-", i))
		}
		if _, waiting := c.Load(); waiting != 12 {
			t.Errorf("%d wait, want 12", waiting)
		}
		refused := 0
		for len(results) > 0 {
			if err := <-results; errors.Is(err, ErrQueueFull) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if refused != 1 {
			t.Errorf("%d were refused to make room, want 1", refused)
		}
		cancel()
	})
}

// TestARequestIsImpatient: it does not wait for ever for a seat, and leaves nothing.
func TestARequestIsImpatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClass()
		var leaves []func()
		for _, name := range []string{"a", "a", "a", "b"} {
			leave, err := c.Enter(t.Context(), name, 1)
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		began := time.Now()
		if _, err := c.Enter(t.Context(), "c", 1); !errors.Is(err, ErrImpatient) || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		for _, leave := range leaves {
			leave()
			leave() // Has no effect.
		}
		if seated, waiting := c.Load(); seated != 0 || waiting != 0 || len(c.senders) != 0 || c.free != 4 {
			t.Errorf("%d seated, %d waiting, %d senders and %d free seats are left", seated, waiting, len(c.senders), c.free)
		}
	})
}

// TestSeatsAreNeverLost: whatever requests do, no seat is given twice or lost, and nobody
// waits beside a free seat that it may have.
func TestSeatsAreNeverLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 99), 1, 200).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			c := newClass()
			var cancels []context.CancelFunc
			var ends []chan struct{}
			for _, step := range steps {
				switch {
				case step < 60:
					ctx, cancel := context.WithCancel(t.Context())
					end := make(chan struct{})
					cancels, ends = append(cancels, cancel), append(ends, end)
					go func() {
						if leave, err := c.Enter(ctx, fmt.Sprint(step%5), 1+step%4); err == nil {
							<-end
							leave()
						}
					}()
				case step < 85 && len(ends) > 0:
					at := step % len(ends)
					closeOnce(ends[at])
				case len(cancels) > 0:
					cancels[step%len(cancels)]()
				}
				if step%3 > 0 {
					synctest.Wait()
					check(t, c)
				}
			}
			for i := range ends {
				cancels[i]()
				closeOnce(ends[i])
			}
			synctest.Wait()
			if seated, waiting := c.Load(); seated != 0 || waiting != 0 || len(c.senders) != 0 || c.ready.Len() != 0 {
				t.Errorf("%d seated, %d waiting, %d senders, %d ready at the end", seated, waiting, len(c.senders), c.ready.Len())
			}
		})
	})
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

func check(t *testing.T, c *Class) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seated, waiting := 0, 0
	for name, s := range c.senders {
		seated, waiting = seated+s.seated, waiting+s.queue.Len()
		if s.weight > c.opts.PerSender && s.seated > 1 || s.weight < s.seated || s.queue.Len() > c.opts.Queue || s.seated+s.queue.Len() == 0 {
			t.Errorf("sender %s: %d seated with a weight of %d, %d waiting", name, s.seated, s.weight, s.queue.Len())
		}
		if s.queue.Len() > 0 && c.free > 0 && (s.seated == 0 || s.weight+s.next().weight <= c.opts.PerSender) {
			t.Errorf("sender %s waits beside %d free seats", name, c.free)
		}
	}
	if seated+c.free != c.opts.Seats || waiting != c.waiting || waiting > c.opts.Waiting {
		t.Errorf("%d seated, %d free, %d waiting of which %d are counted", seated, c.free, waiting, c.waiting)
	}
}

// TestAllowance: use beyond what is allowed is made up for, by each sender for itself.
func TestAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAllowance(10)
		allowed := 0
		for range 100 { // Ten seconds.
			for range 10 {
				if a.Wait("greedy") == 0 {
					a.Use("greedy", 1)
					allowed++
				}
			}
			if wait := a.Wait("polite"); wait != 0 {
				t.Fatalf("the polite one waits %v", wait)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if allowed < 110 || allowed > 121 {
			t.Errorf("%d in 10 s, want 10 a second and 20 that were saved", allowed)
		}
		a.Use("large", 100)
		if wait := a.Wait("large").Round(time.Second); wait != 8*time.Second {
			t.Errorf("the wait for 100 at once is %v, want 8 s", wait)
		}
		time.Sleep(9 * time.Second)
		if wait := a.Wait("large"); wait != 0 {
			t.Errorf("after that it waits %v", wait)
		}
		var none *Allowance
		if none.Use("x", 1000); none.Wait("x") != 0 || NewAllowance(0) != nil {
			t.Error("no allowance is a limit")
		}
	})
}
