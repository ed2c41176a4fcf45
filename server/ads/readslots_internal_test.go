package ads

import (
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// read waits in the background until a connection may be read.
func read(c *connMemory) (may chan struct{}) {
	may = make(chan struct{})
	go func() { c.awaitSlot(); close(may) }()
	synctest.Wait()
	return may
}

// taken processes all that a connection has sent.
func taken(c *connMemory) { (&holding{connMemory: c}).take(freeRequests) }

func isDone(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestTurns checks that connections with much that is not processed are read one after the
// other, in the order in which they came, and that those with little never wait.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(Options{Memory: slotBytes, Registry: prometheus.NewRegistry()}) // One slot.
		var all []*connMemory
		for range 4 {
			all = append(all, m.open(&net.TCPAddr{}))
		}
		first, second, third, small := all[0], all[1], all[2], all[3]
		for _, c := range []*connMemory{first, second, third} {
			c.receive(freeRequests)
		}
		small.receive(freeRequests - 1)
		waits := []chan struct{}{read(first), read(second), read(third), read(small)}
		state := func() (done [4]bool) {
			synctest.Wait()
			for i, c := range waits {
				done[i] = isDone(c)
			}
			return done
		}
		if got := state(); got != [4]bool{true, false, false, true} {
			t.Fatalf("at first %v may be read", got)
		}
		taken(first)
		if got := state(); got != [4]bool{true, true, false, true} {
			t.Errorf("after the first request was processed %v may be read", got)
		}
		taken(third) // What it sent before was processed meanwhile.
		if got := state(); !got[2] {
			t.Error("a connection waits for a slot that it does not need any more")
		}
		second.close()
		if len(m.readSlots.holders) != 0 || m.readSlots.queue.Len() != 0 {
			t.Errorf("%d slots and %d waits are left", len(m.readSlots.holders), m.readSlots.queue.Len())
		}
	})
}

// TestHostsShareTurns checks that a host with many connections keeps no other host waiting
// for longer than one slot time, however many of its connections wait.
func TestHostsShareTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(Options{Memory: 2 * slotBytes, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		from := func(ip byte) *connMemory {
			c := m.open(&net.TCPAddr{IP: net.IPv4(10, 0, 0, ip)})
			c.receive(freeRequests)
			return c
		}
		greedy := make([]*connMemory, 50)
		for i := range greedy {
			greedy[i] = from(1)
			read(greedy[i])
		}
		honest := []*connMemory{from(2), from(3)}
		others := []chan struct{}{read(honest[0]), read(honest[1])}
		time.Sleep(slotTime)
		synctest.Wait()
		for i, waits := range others {
			if !isDone(waits) {
				t.Errorf("host %d has no slot, though all slots of the greedy host have ended", i+2)
			}
		}
		for _, c := range append(greedy, honest...) {
			c.close()
		}
		if len(m.readSlots.began) > 0 {
			t.Errorf("hosts that are gone are remembered: %v", m.readSlots.began)
		}
	})
}

// TestLongTurnEnds checks that a client that sends a large request slowly holds up nobody
// for longer than the slot time, and that a client that nobody waits for may be slow.
func TestLongTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(Options{Memory: slotBytes, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		slow, honest := m.open(&net.TCPAddr{}), m.open(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)})
		slow.receive(freeRequests)
		read(slow)
		time.Sleep(time.Hour)
		if slow.over.Err() != nil {
			t.Fatal("a slow client was ended though nobody waited")
		}
		honest.receive(freeRequests)
		waits := read(honest)
		if isDone(waits) {
			t.Fatal("two connections have the only slot")
		}
		time.Sleep(slotTime)
		synctest.Wait()
		if !isDone(waits) || slow.over.Err() == nil || honest.over.Err() != nil {
			t.Errorf("after the slot time the other one may be read: %v, the slow one is ended: %v", isDone(waits), slow.over.Err() != nil)
		}
	})
}

// TestServersWorkEndsNoTurn checks that no proxy is ended because the server takes long to
// process its request, within bounds.
func TestServersWorkEndsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(Options{Memory: slotBytes, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		first, second := m.open(&net.TCPAddr{}), m.open(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)})
		h, err := first.stream()
		if err != nil {
			t.Fatal(err)
		}
		first.receive(freeRequests)
		read(first)
		h.begin()
		second.receive(freeRequests)
		waits := read(second)
		time.Sleep(workTime - time.Second)
		if first.over.Err() != nil {
			t.Fatal("the proxy was ended while the server worked on its request")
		}
		time.Sleep(slotTime + time.Second)
		synctest.Wait()
		if !isDone(waits) || first.over.Err() == nil {
			t.Error("a slot is never freed while the server works")
		}
		h.close()
		if first.inWork != 0 {
			t.Errorf("%d requests are in work after the stream ended", first.inWork)
		}
	})
}
