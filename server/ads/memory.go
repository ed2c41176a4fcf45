package ads

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// freeRequests are the bytes of requests of one connection that are not counted:
	// as many as HTTP/2 lets a client send on a stream before the server reads them,
	// and as an Envoy needs to introduce itself. The bound on connections bounds them.
	freeRequests = 64 << 10
	// streamCost is the memory of each further stream of a connection before it
	// subscribes to anything: goroutines, buffers and its state in discovery. The
	// first stream does not count, because the bound on connections bounds it.
	streamCost = 32 << 10
)

// errEvicted ends the streams of a connection that held too much.
var errEvicted = status.Error(codes.ResourceExhausted,
	"the streams of this server hold as much memory as they may, and this connection holds the most: ask for less")

// memory counts what the clients of a server make it hold: requests that are not
// processed yet, and the subscriptions of their streams. Above the limit, it ends
// the connection that holds the most, among those of the peer address that holds
// the most. Its lock may be taken while holding others, but no other lock while
// holding it.
type memory struct {
	limit   int64
	log     *slog.Logger
	evicted prometheus.Counter

	mu        sync.Mutex
	held      int64
	requests  int64 // part of held
	conns     map[*connMemory]struct{}
	resting   map[string]rest // by host of evicted connections
	readSlots readSlots
}

// rest is a time in which connections from a host are not read, because one of them
// was evicted. Otherwise a client that reconnects at once would make the server
// read the same requests again and again.
type rest struct {
	until  time.Time
	length time.Duration
}

// Each pause of a host is twice as long as a recent earlier one.
const (
	leastRest = time.Second
	mostRest  = 32 * time.Second
	longAgo   = time.Minute
)

// next returns the next rest.
func (r rest) next(now time.Time) rest {
	length := leastRest
	if r.length > 0 {
		length = min(2*r.length, mostRest)
	}
	return rest{now.Add(length), length}
}

func newMemory(opts Options) *memory {
	m := &memory{limit: opts.Memory, log: opts.Log, conns: map[*connMemory]struct{}{}, resting: map[string]rest{}, readSlots: newReadSlots(opts.Memory)}
	with := promauto.With(opts.Registry)
	gauge := func(of string, read func() int64) {
		with.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pilot_stream_memory_bytes", ConstLabels: prometheus.Labels{"of": of},
			Help: "What clients of --grpc-listen have this server hold: requests being received, subscriptions of streams, and responses that are not read yet.",
		}, func() float64 { return float64(read()) })
	}
	gauge("requests", func() int64 { requests, _ := m.read(); return requests })
	gauge("subscriptions", func() int64 { _, subscriptions := m.read(); return subscriptions })
	m.evicted = with.NewCounter(prometheus.CounterOpts{
		Name: "pilot_stream_connections_evicted_total",
		Help: "Connections to --grpc-listen that were ended because they held the most when all together held too much.",
	})
	return m
}

func (m *memory) read() (requests, subscriptions int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests, m.held - m.requests
}

// connMemory counts the memory of one connection. The lock of memory guards it.
type connMemory struct {
	memory *memory
	host   string
	rest   time.Time // the connection is not read until then
	// over ends, with the reason, when the connection must end.
	over context.Context
	end  context.CancelCauseFunc

	held     int64
	received int64 // bytes of requests that are not processed yet
	counted  int64 // the part of received that counts in held
	streams  int
	inWork   int     // streams with a complete request that is not processed yet
	gone     bool    // evicted or closed; no longer counted
	waiting  *waiter // nil unless the connection waits for a read slot
}

func (m *memory) open(peer net.Addr) *connMemory {
	host, _, err := net.SplitHostPort(peer.String())
	if err != nil {
		host = peer.String()
	}
	c := &connMemory{memory: m, host: host}
	c.over, c.end = context.WithCancelCause(context.Background())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conns[c] = struct{}{}
	m.forgetRestsLocked(time.Now())
	c.rest = m.resting[host].until
	return c
}

func (m *memory) forgetRestsLocked(now time.Time) {
	maps.DeleteFunc(m.resting, func(_ string, r rest) bool { return now.Sub(r.until) > longAgo })
}

// close forgets a closed connection.
func (c *connMemory) close() {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.forgetLocked(net.ErrClosed)
}

// evict ends a connection that holds too much.
func (c *connMemory) evict() {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.evictLocked()
}

func (c *connMemory) evictLocked() {
	if c.gone {
		return
	}
	c.memory.evicted.Inc()
	now := time.Now()
	c.memory.forgetRestsLocked(now)
	c.memory.resting[c.host] = c.memory.resting[c.host].next(now)
	c.memory.log.Warn("a stream connection was ended: it held the most of what streams may hold", "peer", c.host, "bytes", c.held, "streams", c.streams, "limit", c.memory.limit)
	c.forgetLocked(errEvicted)
}

func (c *connMemory) forgetLocked(why error) {
	if c.gone {
		return
	}
	c.gone = true
	c.memory.readSlots.leave(c)
	c.memory.held -= c.held
	c.memory.requests -= c.counted
	delete(c.memory.conns, c)
	c.end(why)
}

// addLocked counts bytes, and ends connections until there is room for them.
func (c *connMemory) addLocked(bytes int64) {
	if c.gone {
		return
	}
	c.held += bytes
	m := c.memory
	for m.held += bytes; bytes > 0 && m.held > m.limit; {
		most := m.greediestLocked()
		if most == nil {
			return
		}
		most.evictLocked()
	}
}

// greediestLocked returns the connection that holds the most, among those of the
// peer that holds the most.
func (m *memory) greediestLocked() (most *connMemory) {
	hosts := map[string]int64{}
	for c := range m.conns {
		hosts[c.host] += c.held
	}
	for c := range m.conns {
		switch {
		case c.held == 0:
		case most == nil, hosts[c.host] > hosts[most.host], c.host == most.host && c.held > most.held:
			most = c
		}
	}
	return most
}

// receive counts bytes of received requests.
func (c *connMemory) receive(bytes int64) {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.receivedLocked(c.received + bytes)
}

// begin records that a request has arrived completely, so that the client is not to
// blame for the time that passes until take.
func (h *holding) begin() {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	h.workLocked(true)
}

// take uncounts bytes of the request that was processed.
func (h *holding) take(bytes int64) {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	h.workLocked(false)
	h.receivedLocked(max(0, h.received-bytes))
}

func (h *holding) workLocked(in bool) {
	switch {
	case in && !h.inWork:
		h.connMemory.inWork++
	case !in && h.inWork:
		h.connMemory.inWork--
	}
	h.inWork = in
}

func (c *connMemory) receivedLocked(bytes int64) {
	c.received = bytes
	if bytes < freeRequests {
		c.memory.readSlots.leave(c)
	}
	counted := max(0, bytes-freeRequests)
	more := counted - c.counted
	if c.gone || more == 0 {
		return
	}
	c.counted = counted
	c.memory.requests += more
	c.addLocked(more)
}

// holding counts the memory of one stream.
type holding struct {
	*connMemory
	own    int64 // fixed cost
	inWork bool  // guarded by the lock of memory

	mu    sync.Mutex
	bytes int64
}

// stream starts to count what a stream holds. The error is the reason why the
// connection must end.
func (c *connMemory) stream() (*holding, error) {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	if c.gone {
		return nil, context.Cause(c.over)
	}
	h := &holding{connMemory: c}
	if c.streams > 0 {
		h.own = streamCost
	}
	c.streams++
	h.bytes = h.own
	c.addLocked(h.own)
	return h, nil
}

// measure replaces the counted bytes of the stream by its present ones.
func (h *holding) measure(held func() int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.setLocked(h.own + held())
}

func (h *holding) setLocked(bytes int64) {
	if bytes == h.bytes {
		return
	}
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	h.addLocked(bytes - h.bytes)
	h.bytes = bytes
}

// close ends the counting. Bytes received on ended streams are uncounted with the
// last of them.
func (h *holding) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.own = 0
	h.setLocked(0)
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	h.workLocked(false)
	if h.streams--; h.streams == 0 {
		h.receivedLocked(0)
	}
}

// reason returns why the context of a connection's stream has ended.
func reason(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return context.Canceled
}
