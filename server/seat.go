package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/pilot-api/pilot-api/server/wire"
)

// seat is a request's place in its class. The request has it while the server works: from the
// arrival of its body to the beginning of its answer. So a client that sends or reads slowly
// keeps no seat. It is safe for concurrent use.
type seat struct {
	enter func() (leave func(), err error)

	mu    sync.Mutex
	leave func() // nil before the seat is taken
	left  bool
}

// take waits for the seat, once.
func (s *seat) take() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leave != nil || s.left {
		return nil
	}
	leave, err := s.enter()
	if err != nil {
		s.left = true
		return err
	}
	s.leave = leave
	return nil
}

// giveBack frees the seat. It is not taken again.
func (s *seat) giveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	if s.leave != nil {
		s.leave()
		s.leave = nil
	}
}

// seated serves a request with a seat of a class. If it has no body, the error says why there
// is none; otherwise the end of the body does.
func (o *overload) seated(w http.ResponseWriter, r *http.Request, of class, sender string, next http.Handler) error {
	s := &seat{enter: func() (func(), error) { return o.enter(r.Context(), of, sender, of.weightOf(r)) }}
	defer s.giveBack()
	if r.Body == nil || r.Body == http.NoBody {
		if err := s.take(); err != nil {
			return err
		}
	}
	r = r.WithContext(context.WithValue(r.Context(), seatKey{}, s))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &seatedBody{r.Body, s}
	}
	next.ServeHTTP(&seatedWriter{w, s}, r)
	return nil
}

// seatedBody takes the seat when its end has arrived.
type seatedBody struct {
	io.ReadCloser
	seat *seat
}

func (b *seatedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		if refused := b.seat.take(); refused != nil {
			return n, refused
		}
	}
	return n, err
}

// seatedWriter gives the seat back when the answer begins.
type seatedWriter struct {
	http.ResponseWriter
	seat *seat
}

func (w *seatedWriter) WriteHeader(code int) {
	w.seat.giveBack()
	w.ResponseWriter.WriteHeader(code)
}

func (w *seatedWriter) Write(p []byte) (int, error) {
	w.seat.giveBack()
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *seatedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type seatKey struct{}

// seatless gives back the seat of a request that runs for long, such as a watch.
func seatless(h wire.Handler) wire.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if s, ok := r.Context().Value(seatKey{}).(*seat); ok {
			s.giveBack()
		}
		return h(w, r)
	}
}
