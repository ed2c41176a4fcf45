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
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// decodeFactor is the memory that decoding, checking and encoding a write takes, as
// a multiple of the length of its text. It was measured at 1 MB each, as the peak
// of live memory above the level before: YAML in lines takes 39 times the text, a
// flow list of one-letter words (a: [b,b,…]) 102 times, a flow list of small maps
// 126 times; JSON takes 55 to 92 times, because of the nodes that give errors their
// lines. A patch decodes the whole patched object, so its length counts as well.
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
	minLine = maxBody * decodeFactor
)

// writeMemory bounds, in bytes, the memory of all writes in progress. A write that
// finds no room waits in line until there is room or its deadline passes. Reads and
// discovery do not use it: they send what is in memory already, or convert it piece
// by piece.
type writeMemory struct{ bodies, decoding *admission.Lines }

// newWriteMemory returns lines for decoding with lineBytes bytes each.
func newWriteMemory(lineBytes int64) *writeMemory {
	lineBytes = max(lineBytes, minLine)
	return &writeMemory{admission.NewLines(smallBody, lineBytes/bodiesFactor), admission.NewLines(smallBody*decodeFactor, lineBytes)}
}

// wholeBody is a body that has been read completely.
type wholeBody struct {
	io.Reader
	text []byte
}

func (*wholeBody) Close() error { return nil }

// admitted admits a write when there is memory for its body and then for decoding
// it. It reads the body before it asks for the memory for decoding, so a slow
// client holds up only the bytes of its own body.
func (k *resource) admitted(h handler) handler { return k.admittedUpTo(maxBody, h) }

// admittedUpTo is admitted with another limit for the body. A body longer than one
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

// userHeader is the header in which a proxy in front of the server names the user,
// as for a Kubernetes API server.
const userHeader = "X-Remote-User"

// authorOf returns the sender of a write as the request states it, unverified.
func authorOf(r *http.Request) store.Author {
	program := queryOf(r).Get("fieldManager")
	if program == "" {
		program, _, _ = strings.Cut(r.UserAgent(), " ")
	}
	return store.Author{User: r.Header.Get(userHeader), Program: program}
}

// work returns the memory that a write takes, in bytes.
func (k *resource) work(r *http.Request, length int) int64 {
	if r.Method == http.MethodPatch {
		if current, err := k.opts.Reads.Get(r.Context(), k.target(r), store.ReadOptions{AtLeast: store.Any}); err == nil {
			length += len(current.JSON())
		}
	}
	return int64(length) * decodeFactor
}

// enter waits for room in a line. The caller must call release when it is done.
func enter(ctx context.Context, line *admission.Lines, bytes int64) (release func(), err error) {
	release, err = line.Enter(ctx, bytes)
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, apierrors.NewTooManyRequests("the server is at the limit of what it decodes at a time; nothing was changed, try again", 1)
	}
	return release, err
}

// readAll reads a body of at most limit bytes.
func readAll(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	text := make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead)
	buf := bytes.NewBuffer(text)
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, errTooLarge(limit)
	}
	if err != nil {
		return nil, wire.BadRequest("read body: %v", err)
	}
	return buf.Bytes(), nil
}
