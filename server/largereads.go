package server

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/store"
)

// Bounds of largeReads.
const (
	// largeAnswer is the length of an answer that waits for its turn, in bytes.
	largeAnswer = compressFrom
	// readWeight is what a read of records takes at most before its length is known:
	// ten versions of the largest size and the present one, as they come from the
	// store, as objects and as an answer.
	readWeight = 3 * 11 * schema.MaxObjectBytes
	// largeReadsKept is how many names of large answers are remembered.
	largeReadsKept = 4096
)

// largeReads admits reads of records, such as histories, of which nobody knows the
// length before they are read. What was large is taken to be large again: it waits for
// room and for its turn. All else is read a few at a time. Safe for concurrent use.
type largeReads struct {
	unknown, large *admission.Room
	turns          *admission.Long

	mu    sync.Mutex
	known map[string]struct{} // names of what was large
}

func newLargeReads(turns *admission.Long) *largeReads {
	return &largeReads{
		unknown: admission.NewRoom(2 * readWeight), large: admission.NewRoom(2 * readWeight),
		turns: turns, known: map[string]struct{}{},
	}
}

// read calls read, which returns how long the answer is, in bytes, and may be called
// twice. The caller must call done once, when the answer is written. Answers that find
// no room or no turn in longPatience are refused.
func (l *largeReads) read(ctx context.Context, name string, read func(context.Context) (size int, err error)) (done func(), err error) {
	if !l.has(name) {
		size, err := l.readUnknown(ctx, read)
		if err != nil || size < largeAnswer {
			return func() {}, err
		}
		l.note(name)
	}
	return l.readLarge(ctx, read)
}

func (l *largeReads) readUnknown(ctx context.Context, read func(context.Context) (int, error)) (size int, err error) {
	within, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	share, err := l.unknown.Enter(within, readWeight)
	if err != nil {
		return 0, errManyReads(ctx, err)
	}
	defer share.Leave()
	began := time.Now()
	if size, err = read(ctx); size >= largeAnswer {
		l.turns.Spend(time.Since(began))
	}
	return size, err
}

func (l *largeReads) readLarge(ctx context.Context, read func(context.Context) (int, error)) (done func(), err error) {
	within, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	share, err := l.large.Enter(within, readWeight)
	if err != nil {
		return nil, errManyReads(ctx, err)
	}
	leave, err := l.turns.Enter(within)
	if err != nil {
		share.Leave()
		return nil, errManyReads(ctx, err)
	}
	defer leave()
	size, err := read(ctx)
	if err != nil {
		share.Leave()
		return nil, err
	}
	share.Keep(int64(size))
	return share.Leave, nil
}

// errManyReads is why a read does not begin. One that nobody waits for has ctx's error.
func errManyReads(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return apierrors.NewTooManyRequests("the server is at the limit of the large answers that it makes at a time, so that others are served beside them; try again", 5)
}

func (l *largeReads) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.known[name]
	return known
}

func (l *largeReads) note(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= largeReadsKept {
		clear(l.known)
	}
	l.known[name] = struct{}{}
}

// measuredHistory counts the bytes of the versions that are read.
type measuredHistory struct {
	store.Historian
	size int
}

func (m *measuredHistory) History(ctx context.Context, key schema.Key) ([]store.Version, error) {
	versions, err := m.Historian.History(ctx, key)
	for _, v := range versions {
		m.size += len(jsonOf(v.Object))
	}
	return versions, err
}
