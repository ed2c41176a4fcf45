package answer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/server/wire"
)

// Bounds of LargeReads.
const (
	// largeAnswer is the length, in bytes, from which an answer waits for its turn.
	largeAnswer = CompressFrom
	// readWeight is the most memory that a read of records takes while its length is
	// not known: ten versions of the largest size and the present one, each as stored
	// bytes, as an object and in the answer.
	readWeight = 3 * 11 * schema.MaxObjectBytes
	// largeReadsKept bounds the remembered names of large answers.
	largeReadsKept = 4096
)

// LargeReads admits reads of records, such as histories, whose length is known only after
// they are read. It expects a read that was large before to be large again, and makes it
// wait for room and for its turn. It runs only a few other reads at the same time. It is
// safe for concurrent use.
type LargeReads struct {
	unknown, large *admission.Room
	turns          *admission.Long
	unread         Unread // answers that have a part of large

	mu    sync.Mutex
	known map[string]struct{} // names of reads that were large
}

// NewLargeReads returns a LargeReads whose large answers take their turns.
func NewLargeReads(turns *admission.Long) *LargeReads {
	return &LargeReads{
		unknown: admission.NewRoom(2 * readWeight), large: admission.NewRoom(2 * readWeight),
		turns: turns, known: map[string]struct{}{},
	}
}

// Read calls read, possibly twice. read returns the length of the answer in bytes. The
// caller must call done once, when the answer is written. If an answer gets no memory or no
// turn within admission.Patience, it is refused.
func (l *LargeReads) Read(ctx context.Context, name string, read func(context.Context) (size int, err error)) (done func(), err error) {
	if !l.has(name) {
		size, err := l.readUnknown(ctx, read)
		if err != nil || size < largeAnswer {
			return func() {}, err
		}
		l.note(name)
	}
	return l.readLarge(ctx, read)
}

func (l *LargeReads) readUnknown(ctx context.Context, read func(context.Context) (int, error)) (size int, err error) {
	within, cancel := context.WithTimeout(ctx, admission.Patience)
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

func (l *LargeReads) readLarge(ctx context.Context, read func(context.Context) (int, error)) (done func(), err error) {
	within, cancel := context.WithTimeout(ctx, admission.Patience)
	defer cancel()
	stop := l.unread.WhileWaiting()
	share, err := l.large.Enter(within, readWeight)
	stop()
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

// WriteJSON answers with a value whose length is known only once it is encoded.
func (l *LargeReads) WriteJSON(w http.ResponseWriter, r *http.Request, name string, value func() (any, error)) error {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML)
	if err != nil {
		return err
	}
	var body []byte
	done, err := l.Read(r.Context(), name, func(context.Context) (int, error) {
		v, err := value()
		if err != nil {
			return 0, err
		}
		body, err = json.Marshal(v)
		return len(body), err
	})
	if err != nil {
		return err
	}
	defer done()
	defer l.Sending(w)()
	return WriteText(w, http.StatusOK, f, body)
}

// errManyReads returns the error for a read that may not begin. It returns err if the
// client has gone.
func errManyReads(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	return apierrors.NewTooManyRequests("the server is at the limit of the large answers that it makes at a time, so that others are served beside them; try again", 5)
}

func (l *LargeReads) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.known[name]
	return known
}

func (l *LargeReads) note(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= largeReadsKept {
		clear(l.known)
	}
	l.known[name] = struct{}{}
}

// Sending records that an answer is being sent, and holds a part of the memory for large
// answers. The handler must call sent before it returns. If others wait for that memory, a
// client that leaves its answer unread is cut off.
func (l *LargeReads) Sending(w http.ResponseWriter) (sent func()) { return l.unread.addPaced(w) }
