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
func read(a *account) (may chan struct{}) {
	may = make(chan struct{})
	go func() { a.awaitTurn(); close(may) }()
	synctest.Wait()
	return may
}

// taken processes all that a connection has sent.
func taken(a *account) { (&holding{account: a}).take(freeRequests) }

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
		m := newMemory(Options{Memory: turnBytes, Registry: prometheus.NewRegistry()}) // One turn.
		var all []*account
		for range 4 {
			all = append(all, m.open(&net.TCPAddr{}))
		}
		first, second, third, small := all[0], all[1], all[2], all[3]
		for _, a := range []*account{first, second, third} {
			a.receive(freeRequests)
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
			t.Error("a connection waits for a turn that it does not need any more")
		}
		second.close()
		if len(m.turns.holders) != 0 || m.turns.queue.Len() != 0 {
			t.Errorf("%d turns and %d waits are left", len(m.turns.holders), m.turns.queue.Len())
		}
	})
}

// TestHostsShareTurns checks that a host with many connections keeps no other host waiting
// for longer than one turn, however many of its connections wait.
func TestHostsShareTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(Options{Memory: 2 * turnBytes, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		from := func(ip byte) *account {
			a := m.open(&net.TCPAddr{IP: net.IPv4(10, 0, 0, ip)})
			a.receive(freeRequests)
			return a
		}
		greedy := make([]*account, 50)
		for i := range greedy {
			greedy[i] = from(1)
			read(greedy[i])
		}
		honest := []*account{from(2), from(3)}
		others := []chan struct{}{read(honest[0]), read(honest[1])}
		time.Sleep(turnTime)
		synctest.Wait()
		for i, waits := range others {
			if !isDone(waits) {
				t.Errorf("host %d has no turn, though all turns of the greedy host have ended", i+2)
			}
		}
		for _, a := range append(greedy, honest...) {
			a.close()
		}
		if len(m.turns.began) > 0 {
			t.Errorf("hosts that are gone are remembered: %v", m.turns.began)
		}
	})
}

// TestLongTurnEnds checks that a client that sends a large request slowly holds up nobody
// for longer than a turn, and that a client that nobody waits for may be slow.
func TestLongTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(Options{Memory: turnBytes, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
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
			t.Fatal("two connections have the only turn")
		}
		time.Sleep(turnTime)
		synctest.Wait()
		if !isDone(waits) || slow.over.Err() == nil || honest.over.Err() != nil {
			t.Errorf("after a turn the other one may be read: %v, the slow one is ended: %v", isDone(waits), slow.over.Err() != nil)
		}
	})
}

// TestServersWorkEndsNoTurn checks that no proxy is ended because the server takes long to
// process its request, within bounds.
func TestServersWorkEndsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(Options{Memory: turnBytes, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
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
		time.Sleep(turnTime + time.Second)
		synctest.Wait()
		if !isDone(waits) || first.over.Err() == nil {
			t.Error("a turn never ends while the server works")
		}
		h.close()
		if first.inWork != 0 {
			t.Errorf("%d requests are in work after the stream ended", first.inWork)
		}
	})
}
