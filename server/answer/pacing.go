package answer

import (
	"context"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/pilot-api/pilot-api/server/admission"
)

const (
	// pieceLength is how much of an answer is compressed in one turn, in bytes.
	pieceLength = 256 << 10
	// mostEncoded is how many large answers are encoded at a time. It is less than the
	// number that may wait for a turn (admission.Long), so an answer that has begun is
	// never refused a turn.
	mostEncoded = 24
	// gzipPatience is how long an answer waits to be compressed.
	gzipPatience = 5 * time.Second
	// cutPatience is how long an answer waits for the permit of one that was cut.
	cutPatience = 3 * time.Second
)

// Pacer shares the time for compressing large answers, and for encoding them as YAML or
// tables. The handler encodes an answer piece by piece, each piece in a turn. While a
// client reads a piece, other answers have the turn.
type Pacer struct {
	turns     *admission.Long
	permits   *semaphore.Weighted
	permitted Unread
}

// NewPacer returns a Pacer whose answers take their turns.
func NewPacer(turns *admission.Long) *Pacer {
	return &Pacer{turns: turns, permits: semaphore.NewWeighted(mostEncoded)}
}

// permit takes a permit for an answer, nil for none. If none is free, an answer that its
// client does not read gives up its permit.
func (p *Pacer) permit(a *answerWriter) (leave func(), ok bool) {
	if !p.permits.TryAcquire(1) {
		if !p.permitted.cut() {
			return nil, false
		}
		within, cancel := context.WithTimeout(context.Background(), cutPatience)
		defer cancel()
		if p.permits.Acquire(within, 1) != nil {
			return nil, false
		}
	}
	if a == nil {
		return func() { p.permits.Release(1) }, true
	}
	remove := p.permitted.Add(a.TimedWriter)
	return func() { remove(); p.permits.Release(1) }, true
}

// TurnOfList waits for the turn to compress a list for many clients.
func (p *Pacer) TurnOfList() (leave func(), err error) {
	within, cancel := context.WithTimeout(context.Background(), admission.Patience)
	defer cancel()
	release, ok := p.permit(nil)
	if !ok {
		return nil, admission.ErrCrowded
	}
	defer release()
	return p.turns.Enter(within)
}

// answerWriter is the writer of one answer, with the Pacer for its encoding.
type answerWriter struct {
	*TimedWriter
	*Pacer
	ctx context.Context
}

// pacedBy returns the answerWriter of an answer, or nil if the answer is not paced.
func pacedBy(w http.ResponseWriter) *answerWriter {
	switch w := w.(type) {
	case *answerWriter:
		return w
	case *compressor:
		return w.answer
	}
	return nil
}

// begin takes a permit for an answer in gzip and waits for a first turn. If it returns
// false, the answer is sent uncompressed.
func (a *answerWriter) begin() (release func(), ok bool) {
	release, ok = a.permit(a)
	if !ok {
		return nil, false
	}
	within, cancel := context.WithTimeout(a.ctx, gzipPatience)
	defer cancel()
	leave, err := a.turns.Enter(within)
	if err != nil {
		release()
		return nil, false
	}
	leave()
	return release, true
}

// paced calls encode with a writer for a large answer. encode holds a turn except
// while it writes. If too many answers are being encoded already, paced returns an
// error for a Status.
func (a *answerWriter) paced(w http.ResponseWriter, encode func(http.ResponseWriter) error) error {
	release, ok := a.permit(a)
	if !ok {
		w.Header().Del("ETag") // It is the tag of another answer.
		return errManyReads(a.ctx, admission.ErrCrowded)
	}
	defer release()
	within, cancel := context.WithTimeout(a.ctx, admission.Patience)
	defer cancel()
	leave, err := a.turns.Enter(within)
	if err != nil {
		w.Header().Del("ETag")
		return errManyReads(a.ctx, err)
	}
	p := &pacedWriter{ResponseWriter: w, answer: a, leave: leave}
	defer p.stop()
	if err := encode(p); err != nil {
		return err
	}
	return p.failed
}

// pacedWriter gives up the turn while it writes.
type pacedWriter struct {
	http.ResponseWriter
	answer *answerWriter
	leave  func() // nil without a turn
	ended  bool
	failed error
}

func (p *pacedWriter) Write(text []byte) (int, error) {
	if p.failed != nil {
		return 0, p.failed
	}
	if p.leave != nil {
		p.leave()
		p.leave = nil
	}
	n, err := p.ResponseWriter.Write(text)
	if err != nil || p.ended {
		return n, err
	}
	p.leave, p.failed = p.answer.turns.Enter(p.answer.ctx)
	return n, p.failed
}

// stop ends the encoding: the remaining writes need no turn.
func (p *pacedWriter) stop() {
	p.ended = true
	if p.leave != nil {
		p.leave()
		p.leave = nil
	}
}

// inPieces compresses a text piece by piece, each in its turn, and sends the
// output.
func (c *compressor) inPieces(text []byte) (int, error) {
	for done := 0; done < len(text); {
		piece := text[done:min(done+pieceLength, len(text))]
		if err := c.encode(func() { _, _ = c.gz.Write(piece) }); err != nil {
			return done, err
		}
		done += len(piece)
	}
	return len(text), nil
}

// encode does one piece of work in its turn and sends its output. If it gets no
// turn, the answer stays incomplete.
func (c *compressor) encode(work func()) error {
	if c.failed != nil {
		return c.failed
	}
	leave, err := c.answer.turns.Enter(c.answer.ctx)
	if err != nil {
		c.failed = err
		return err
	}
	work()
	leave()
	_, err = io.Copy(c.ResponseWriter, &c.out)
	return err
}
