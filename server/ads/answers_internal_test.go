package ads

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
)

func accountsOf(limit int64, hosts ...string) (*answers, []*connMemory) {
	opts := Options{Memory: limit, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()}
	m := newMemory(opts)
	var all []*connMemory
	for i, host := range hosts {
		all = append(all, m.open(&net.TCPAddr{IP: net.ParseIP(host), Port: i + 1}))
	}
	return newAnswers(opts), all
}

// TestUnreadResponsesGiveWay checks that a response without room waits until others
// are read, or until the connection that leaves the most unread is ended.
func TestUnreadResponsesGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, c := accountsOf(100, "10.0.0.1", "10.0.0.2", "10.0.0.3")
		greedy, slow, honest := c[0], c[1], c[2]
		defer context.AfterFunc(greedy.over, func() { greedy.close(); a.drop(greedy) })()
		shared := make([]byte, 40)
		keep := func(to *connMemory, bytes *[]byte, size int64) func() {
			t.Helper()
			if err := a.wait(t.Context(), size); err != nil {
				t.Fatal(err)
			}
			return a.keep(bytes, size, to)
		}
		keep(greedy, &shared, 40)
		own := make([]byte, 20)
		release := keep(greedy, &own, 20)
		release()
		release()
		again := make([]byte, 20)
		keep(greedy, &again, 20)
		bytes := make([]byte, 30)
		keep(slow, &bytes, 30)
		if a.held != 90 {
			t.Errorf("%d bytes are counted, want 90", a.held)
		}
		other := make([]byte, 50)
		keep(honest, &other, 50) // It waits.
		if greedy.over.Err() == nil || slow.over.Err() != nil || honest.over.Err() != nil {
			t.Errorf("ended: %v, %v, %v", greedy.over.Err(), slow.over.Err(), honest.over.Err())
		}
		if a.held != 80 {
			t.Errorf("%d bytes are counted, want 80", a.held)
		}
	})
}

// TestSharedResponsesCountOnce until the last of their readers has them.
func TestSharedResponsesCountOnce(t *testing.T) {
	a, c := accountsOf(100, "10.0.0.1", "10.0.0.2")
	shared := make([]byte, 40)
	var releases []func()
	for range 10 {
		for _, to := range c {
			if !a.room.TryAcquire(40) {
				t.Fatal("there is no room for what is there already")
			}
			releases = append(releases, a.keep(&shared, 40, to))
		}
	}
	for i, release := range releases {
		if a.held != 40 {
			t.Fatalf("%d bytes are counted after %d were read", a.held, i)
		}
		release()
	}
	if a.held != 0 || !a.room.TryAcquire(100) {
		t.Errorf("%d bytes are counted when all is read", a.held)
	}
}

// TestThePeerThatHoldsMostIsEnded checks that one of its connections is ended,
// although another peer has the connection that holds the most.
func TestThePeerThatHoldsMostIsEnded(t *testing.T) {
	_, c := accountsOf(1<<20, "10.0.0.1", "10.0.0.1", "10.0.0.2")
	many1, many2, one := c[0], c[1], c[2]
	hold := func(to *connMemory, bytes int64) {
		h, err := to.stream()
		if err != nil {
			t.Fatal(err)
		}
		h.measure(func() int64 { return bytes })
	}
	hold(one, 400<<10)
	hold(many1, 300<<10)
	hold(many2, 310<<10)
	if many1.over.Err() != nil || many2.over.Err() != nil || one.over.Err() != nil {
		t.Fatal("a connection was ended although there is room")
	}
	hold(many1, 100<<10)
	if many1.over.Err() == nil || many2.over.Err() != nil || one.over.Err() != nil {
		t.Errorf("ended: %v, %v, %v", many1.over.Err(), many2.over.Err(), one.over.Err())
	}
	if _, err := many1.stream(); err == nil {
		t.Error("a connection that is ended begins another stream")
	}
}

// TestDataIsCounted checks that data is counted however the frames arrive, and
// dropped from the next frame on when the client must go.
func TestDataIsCounted(t *testing.T) {
	for range 300 {
		testData(t)
	}
}

func testData(t *testing.T) {
	text := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	type frame struct {
		begin int
		data  bool
	}
	var frames []frame
	for range 100 {
		kind, length := byte(rand.IntN(3)), rand.IntN(60)
		frames = append(frames, frame{len(text), kind == frameData})
		text = append(text, 0, byte(length>>8), byte(length), kind, 0, 0, 0, 0, 1)
		for range length {
			text = append(text, byte(rand.IntN(256)))
		}
	}
	_, accounts := accountsOf(1<<20, "10.0.0.1")
	from, to := net.Pipe()
	c := &countedConn{Conn: to, own: &connection{memory: accounts[0]}, left: prefaceLength}
	go func() {
		for rest := text; len(rest) > 0; {
			n := min(len(rest), rand.IntN(50))
			_, _ = from.Write(rest[:n])
			rest = rest[n:]
		}
		from.Close()
	}()
	end := rand.IntN(len(text))
	var got []byte
	for {
		if len(got) >= end {
			accounts[0].evict()
		}
		room := make([]byte, frameHead+1+rand.IntN(40))
		n, err := c.Read(room)
		got = append(got, room[:n]...)
		if end > 0 && len(got) >= end {
			end = len(got) // where it was ended
			accounts[0].evict()
			end = -end
		}
		if err != nil {
			break
		}
	}
	end = -end
	data := 0
	want := slices.Clone(text[:min(end, prefaceLength)])
	for i, f := range append(frames, frame{begin: len(text)}) {
		if i == 0 {
			want = slices.Clone(text[:f.begin])
			continue
		}
		last := frames[i-1]
		if last.data && last.begin < end {
			data += max(0, min(f.begin, end)-last.begin-frameHead)
		}
		if !last.data || last.begin < end {
			want = append(want, text[last.begin:f.begin]...)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("ended after %d of %d bytes, read %d, want %d", end, len(text), len(got), len(want))
	}
	if accounts[0].received != int64(data) {
		t.Fatalf("ended after %d bytes, counted %d of data, want %d", end, accounts[0].received, data)
	}
}
