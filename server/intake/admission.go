package intake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// decodeFactor is the memory that decoding, checking and encoding a write takes, as
// a multiple of the length of its text. It was measured at 1 MB each, as the peak
// of live memory above the level before: YAML in lines takes 39 times the text, a
// flow list of one-letter words (a: [b,b,…]) 102 times, a flow list of small maps
// 126 times; JSON takes 55 to 92 times, because of the nodes that give errors their
// lines. A write that changes a stored object may decode it, so its length counts as
// well.
const decodeFactor = 128

// Parameters of admission.
const (
	// smallBody divides requests into two lines, so that a small one never waits for
	// large ones.
	smallBody = 16 << 10
	// bodiesFactor divides the memory for decoding: that part of it bounds, in bytes,
	// the bodies that may wait to be decoded.
	bodiesFactor = 4
	// minLine is the least memory of a line: one request of the largest size must fit.
	minLine = MaxBody * decodeFactor
)

// writeMemory bounds, in bytes, the memory of all writes in progress. A write that
// finds no room waits in line until there is room or its deadline passes. Reads and
// discovery do not use it: they send what is in memory already, or convert it piece
// by piece.
type writeMemory struct {
	smallBodies, largeBodies *admission.Bodies
	decoding                 *admission.Lines
	unread                   answer.Unread // answers of writes, which keep their memory until they are read
}

// newWriteMemory returns lines for decoding with lineBytes bytes each.
func newWriteMemory(lineBytes int64) *writeMemory {
	lineBytes = max(lineBytes, minLine)
	return &writeMemory{
		smallBodies: admission.NewBodies(lineBytes / bodiesFactor), largeBodies: admission.NewBodies(lineBytes / bodiesFactor),
		decoding: admission.NewLines(smallBody*decodeFactor, lineBytes),
	}
}

// bodies returns the memory for a body of that length, or less than 0 for an unknown
// one.
func (m *writeMemory) bodies(length int64) *admission.Bodies {
	if length >= 0 && length <= smallBody {
		return m.smallBodies
	}
	return m.largeBodies
}

// wholeBody is a body that has been read completely.
type wholeBody struct {
	io.Reader
	text []byte
}

func (*wholeBody) Close() error { return nil }

// Work is the memory that a write needs in addition to that for its body.
type Work struct {
	// stored returns the length, in bytes, of the stored object that a request changes;
	// nil if it changes none.
	Stored func(*http.Request) int
	Least  int64 // memory, in bytes
}

// Admitted admits a write when there is memory for its body and then for decoding
// it. It reads the body before it asks for the memory for decoding, so a slow
// client holds up only the bytes of its own body that have arrived.
func (d *Decoder) Admitted(of Work, h wire.Handler) wire.Handler {
	return d.WithBody(MaxBody, func(w http.ResponseWriter, r *http.Request) error {
		length := 0
		if of.Stored != nil {
			length = of.Stored(r)
		}
		release, err := d.EnterDecoding(r, length, of.Least)
		if err != nil {
			return err
		}
		defer release()
		return h(w, r)
	})
}

// WithBody reads the body of a write, of at most limit bytes, when there is memory for it.
// The handler must ask for the memory to decode it.
func (d *Decoder) WithBody(limit int64, h wire.Handler) wire.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.ContentLength > limit {
			return ErrTooLarge(limit)
		}
		memory := d.memory.bodies(r.ContentLength).Begin(func() {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
		})
		defer memory.Leave()
		text, err := readAll(w, r, limit, memory)
		if err != nil {
			return err
		}
		if !memory.Arrived() {
			return notArrived(memory, nil)
		}
		r.Body = &wholeBody{bytes.NewReader(text), text}
		answer := &answer.TimedWriter{ResponseWriter: w}
		defer d.memory.unread.Add(answer)()
		return h(answer, r.WithContext(store.WithAuthor(r.Context(), authorOf(r))))
	}
}

// EnterDecoding waits for the memory to decode a body and the stored objects that it
// changes, whose length in bytes is given. A write takes at least least bytes.
func (d *Decoder) EnterDecoding(r *http.Request, stored int, least int64) (release func(), err error) {
	work := max(int64(BodyLength(r)+stored)*decodeFactor, least)
	if work > smallBody*decodeFactor {
		defer d.memory.unread.WhileWaiting()()
	}
	return enter(r.Context(), d.memory.decoding, work)
}

// userHeader is the header in which a proxy in front of the server names the user,
// as for a Kubernetes API server.
const userHeader = "X-Remote-User"

// mostAuthor bounds the names of an author, in bytes. Each record of a history has them.
const mostAuthor = 256

// authorOf returns the sender of a write: the identity that was proved, or else the user
// that the request states.
func authorOf(r *http.Request) store.Author {
	user := r.Header.Get(userHeader)
	if who := identity.Of(r.Context()); who.IsProved() {
		user = who.Name
	}
	program := wire.Query(r).Get("fieldManager")
	if program == "" {
		program, _, _ = strings.Cut(r.UserAgent(), " ")
	}
	return store.Author{User: wire.Short(user, mostAuthor), UserAgent: wire.Short(program, mostAuthor)}
}

// enter waits for room in a line. The caller must call release when it is done.
func enter(ctx context.Context, line *admission.Lines, bytes int64) (release func(), err error) {
	release, err = line.Enter(ctx, bytes)
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, errNoMemory()
	}
	return release, err
}

func errNoMemory() error {
	return apierrors.NewTooManyRequests("the server is at the limit of what it decodes at a time; nothing was changed, try again", 1)
}

// firstStep is the memory that a body takes before any of it has arrived, in bytes. All
// connections together find room for it.
const firstStep = 512

// readAll reads a body of at most limit bytes. Its memory doubles as it arrives.
func readAll(w http.ResponseWriter, r *http.Request, limit int64, memory *admission.Body) ([]byte, error) {
	most := limit + 1
	if r.ContentLength >= 0 {
		most = r.ContentLength + 1 // The last byte is for reading the end.
	}
	body := http.MaxBytesReader(w, r.Body, limit)
	var text []byte
	for {
		if len(text) == cap(text) {
			more := min(max(int64(cap(text)), firstStep), most-int64(cap(text)))
			if err := memory.Grow(r.Context(), more); err != nil {
				return nil, notArrived(memory, err)
			}
			text = append(make([]byte, 0, int64(cap(text))+more), text...)
		}
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, ErrTooLarge(limit)
		}
		if err != nil {
			return nil, notArrived(memory, err)
		}
	}
}

// notArrived returns the error for a body that did not arrive.
func notArrived(memory *admission.Body, err error) error {
	switch {
	case memory.Cut():
		return apierrors.NewTooManyRequests("the body arrives too slowly while others need its memory; nothing was changed, try again", 1)
	case errors.Is(err, context.DeadlineExceeded):
		return errNoMemory()
	case errors.Is(err, context.Canceled), apierrors.IsTooManyRequests(err):
		return err
	}
	return wire.BadRequest("read body: %v", err)
}
