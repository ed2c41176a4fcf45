package ads

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/semaphore"

	"github.com/pilot-api/pilot-api/discovery"
)

// readPatience is how long a client may leave a response unread while others wait
// for room.
const readPatience = 3 * time.Second

// answers bounds, in bytes, the encoded responses that are not read yet. A response
// that several streams receive counts once. A response that finds no room waits;
// meanwhile, the connections that leave theirs unread are ended, starting with the
// one that holds the most.
type answers struct {
	limit int64
	room  *semaphore.Weighted

	mu   sync.Mutex
	held int64
	all  map[*[]byte]*answer
}

// answer counts the bytes of a response that still has readers.
type answer struct {
	size    int64
	readers []*reader // longest waiting first
}

type reader struct {
	conn  *connMemory
	since time.Time
}

func newAnswers(opts Options) *answers {
	a := &answers{limit: opts.Memory, room: semaphore.NewWeighted(opts.Memory), all: map[*[]byte]*answer{}}
	promauto.With(opts.Registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pilot_stream_memory_bytes", ConstLabels: prometheus.Labels{"of": "responses"},
		Help: "What clients of --grpc-listen have this server hold: requests being received, subscriptions of streams, and responses that are not read yet.",
	}, func() float64 { a.mu.Lock(); defer a.mu.Unlock(); return float64(a.held) })
	return a
}

// encode waits for room for a response and encodes it. The error is ctx's.
func (a *answers) encode(ctx context.Context, to *connMemory, r *discovery.Response) (*encoded, error) {
	size := min(int64(r.Size()), a.limit)
	if err := a.wait(ctx, size); err != nil {
		return nil, err
	}
	own, shared := r.Encode()
	return &encoded{own: own, shared: shared, release: a.keep(shared, size, to)}, nil
}

func (a *answers) wait(ctx context.Context, size int64) error {
	if a.room.TryAcquire(size) {
		return nil
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	go func() {
		look := time.NewTicker(readPatience)
		defer look.Stop()
		for {
			select {
			case <-look.C:
				a.evictSlowest()
			case <-ctx.Done():
				return
			}
		}
	}()
	return a.room.Acquire(ctx, size)
}

// keep records a reader of the bytes of a response. The caller has reserved size
// for them; keep gives that back if the response has another reader.
func (a *answers) keep(bytes *[]byte, size int64, to *connMemory) (release func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &reader{conn: to, since: time.Now()}
	if known := a.all[bytes]; known != nil {
		a.room.Release(size)
		known.readers = append(known.readers, r)
	} else {
		a.all[bytes] = &answer{size: size, readers: []*reader{r}}
		a.held += size
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.dropLocked(bytes, func(other *reader) bool { return other == r })
	})
}

// drop forgets a closed connection.
func (a *answers) drop(gone *connMemory) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for bytes := range a.all {
		a.dropLocked(bytes, func(r *reader) bool { return r.conn == gone })
	}
}

func (a *answers) dropLocked(bytes *[]byte, is func(*reader) bool) {
	known := a.all[bytes]
	if known == nil {
		return
	}
	rest := known.readers[:0]
	for _, r := range known.readers {
		if !is(r) {
			rest = append(rest, r)
		}
	}
	clear(known.readers[len(rest):])
	if known.readers = rest; len(rest) == 0 {
		delete(a.all, bytes)
		a.held -= known.size
		a.room.Release(known.size)
	}
}

// evictSlowest ends the connection that has left the most unread for too long. A
// response with several readers counts for the first.
func (a *answers) evictSlowest() {
	a.mu.Lock()
	late := time.Now().Add(-readPatience)
	unread := map[*connMemory]int64{}
	var most *connMemory
	for _, one := range a.all {
		first := one.readers[0]
		if first.since.After(late) || first.conn.over.Err() != nil {
			continue
		}
		unread[first.conn] += one.size
		if most == nil || unread[first.conn] > unread[most] {
			most = first.conn
		}
	}
	a.mu.Unlock()
	if most != nil {
		most.evict()
	}
}
