package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/store"
)

// What a write takes in memory while it is decoded, checked and encoded follows
// the text. Measured at 1 MB each, as the most that is live at a time above what
// there was: YAML in lines 39 times the text, a flow list of one-letter words
// (a: [b,b,…]) 102 times, one of small maps 126 times; JSON 55 to 92 times,
// because of the nodes that errors find their lines with. An object that is
// patched is decoded whole, so its length counts as well.
const decodeFactor = 128

// Weights of a write.
const (
	// smallBody divides the requests into two lines, so that a small one never
	// waits for large ones.
	smallBody = 16 << 10
	// bodiesFactor is how many bytes of bodies may wait to be decoded, in
	// parts of the memory for decoding.
	bodiesFactor = 4
	// minLine is the least memory of a line: one request of the largest size
	// must fit.
	minLine = maxBody * decodeFactor
)

// writeMemory bounds, in bytes, what the writes in progress take together. Who
// finds no room waits in line until there is some, or until the deadline. Reads
// and discovery do not come by here: they send what is in memory already, or
// turn it into something else piece by piece.
type writeMemory struct{ bodies, decoding *admission.Lines }

// newWriteMemory makes lines for decoding with that many bytes each.
func newWriteMemory(lineBytes int64) *writeMemory {
	lineBytes = max(lineBytes, minLine)
	return &writeMemory{admission.NewLines(smallBody, lineBytes/bodiesFactor), admission.NewLines(smallBody*decodeFactor, lineBytes)}
}

// wholeBody is a body that was read already.
type wholeBody struct {
	io.Reader
	text []byte
}

func (*wholeBody) Close() error { return nil }

// admitted lets a write in when there is memory for its body and then for what
// is made of it. Reading comes first and by itself: a client that sends slowly
// holds up only its own body's bytes.
func (k *resource) admitted(h handler) handler { return k.admittedUpTo(maxBody, h) }

// admittedUpTo is admitted for bodies of another length. What is longer than one
// object is decoded object by object.
func (k *resource) admittedUpTo(limit int64, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		expected := r.ContentLength
		if expected > limit {
			return errTooLarge(limit)
		}
		if expected < 0 {
			expected = limit
		}
		releaseBody, err := enter(r.Context(), k.writeMemory.bodies, expected)
		if err != nil {
			return err
		}
		defer releaseBody()
		text, err := readAll(w, r, limit)
		if err != nil {
			return err
		}
		r.Body = &wholeBody{bytes.NewReader(text), text}
		release, err := enter(r.Context(), k.writeMemory.decoding, k.work(r, len(text)))
		if err != nil {
			return err
		}
		defer release()
		return h(w, r.WithContext(store.WithAuthor(r.Context(), authorOf(r))))
	}
}

// userHeader is where what stands before the server says who asks, as with an
// API server of Kubernetes.
const userHeader = "X-Remote-User"

// authorOf is who sends a write, in their own words.
func authorOf(r *http.Request) store.Author {
	program := queryOf(r).Get("fieldManager")
	if program == "" {
		program, _, _ = strings.Cut(r.UserAgent(), " ")
	}
	return store.Author{User: r.Header.Get(userHeader), Program: program}
}

// work is what a write takes in memory.
func (k *resource) work(r *http.Request, length int) int64 {
	if r.Method == http.MethodPatch {
		if current, err := k.opts.Reads.Get(r.Context(), k.target(r), store.ReadOptions{AtLeast: store.Any}); err == nil {
			length += len(current.JSON())
		}
	}
	return int64(length) * decodeFactor
}

// enter waits for room in a line.
func enter(ctx context.Context, line *admission.Lines, bytes int64) (release func(), err error) {
	release, err = line.Enter(ctx, bytes)
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, apierrors.NewTooManyRequests("the server is at the limit of what it decodes at a time; nothing was changed, try again", 1)
	}
	return release, err
}

// readAll reads a body, up to a bound.
func readAll(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	text := make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead)
	buf := bytes.NewBuffer(text)
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, errTooLarge(limit)
	}
	if err != nil {
		return nil, badRequest("read body: %v", err)
	}
	return buf.Bytes(), nil
}
