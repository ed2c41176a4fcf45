package answer

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/pilot-api/pilot-api/server/wire"
)

// CompressFrom is the length, in bytes, from which an answer is worth compressing.
// A Kubernetes API server uses the same.
const CompressFrom = 128 << 10

// Compressed answers a GET in gzip if the client accepts that and the answer is
// large. Do not use it for watches, whose events must not wait in a buffer.
func (p *Pacer) Compressed(h wire.Handler) wire.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !wire.IsRead(r) {
			return h(w, r) // A write that is done must not be answered with 429.
		}
		answer := &answerWriter{&TimedWriter{ResponseWriter: w}, p, r.Context()}
		w = answer
		w.Header().Add("Vary", "Accept-Encoding")
		if r.Method == http.MethodHead || !takesGzip(r) {
			return h(w, r)
		}
		c := &compressor{ResponseWriter: w, answer: answer}
		defer c.release()
		if err := h(c, r); err != nil {
			return err
		}
		return c.finish()
	}
}

// takesGzip reports whether Accept-Encoding allows gzip.
func takesGzip(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(header, ",") {
			coding, params, _ := strings.Cut(one, ";")
			q, weighed := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
			weight, err := strconv.ParseFloat(q, 64)
			if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				return !weighed || err == nil && weight > 0
			}
		}
	}
	return false
}

// compressor holds an answer back until it is known to be large or has ended.
type compressor struct {
	http.ResponseWriter
	answer *answerWriter
	code   int
	held   []byte
	gz     *gzip.Writer // set once the answer is known to be large
	leave  func()       // gives up the permit; set with gz
	out    bytes.Buffer // output of gz
	sent   bool         // whether the head was sent
	failed error        // why the answer is incomplete
}

func (c *compressor) WriteHeader(code int) {
	c.code = code
	length, err := strconv.Atoi(c.Header().Get("Content-Length"))
	switch {
	case err == nil && length >= CompressFrom && code == http.StatusOK:
		c.begin()
	case err == nil || code != http.StatusOK:
		c.plain()
	}
}

func (c *compressor) Write(p []byte) (int, error) {
	switch {
	case c.gz != nil:
		return c.inPieces(p)
	case c.sent:
		return c.ResponseWriter.Write(p)
	case len(c.held)+len(p) < CompressFrom:
		c.held = append(c.held, p...)
		return len(p), nil
	}
	c.begin()
	held := c.held
	c.held = nil
	if _, err := c.Write(held); err != nil {
		return 0, err
	}
	return c.Write(p)
}

// begin sends the head of an answer in gzip, whose ETag differs from that of the
// uncompressed answer. If too many answers are being encoded, this one is sent
// uncompressed.
func (c *compressor) begin() {
	release, ok := c.answer.begin()
	if !ok {
		c.plain()
		return
	}
	c.leave = release
	c.Header().Del("Content-Length")
	c.asGzip()
	c.gz = gzipWriters.Get().(*gzip.Writer)
	c.gz.Reset(&c.out)
	c.plain()
}

func (c *compressor) asGzip() {
	h := c.Header()
	h.Set("Content-Encoding", "gzip")
	if tag := h.Get("ETag"); tag != "" {
		h.Set("ETag", strings.TrimSuffix(tag, `"`)+inGzip+`"`)
	}
}

// Packed returns the writer for an answer that is already in gzip, of a writer that
// TakesPacked.
func Packed(w http.ResponseWriter) http.ResponseWriter {
	c := w.(*compressor)
	c.asGzip()
	c.sent = true
	return c.ResponseWriter
}

// TakesPacked reports whether a large answer goes out in gzip.
func TakesPacked(w http.ResponseWriter) bool {
	_, ok := w.(*compressor)
	return ok
}

func (c *compressor) plain() {
	if c.sent = true; c.code != 0 {
		c.ResponseWriter.WriteHeader(c.code)
	}
}

// finish sends the rest of the answer.
func (c *compressor) finish() error {
	if c.gz != nil {
		_ = c.encode(func() { _ = c.gz.Close() }) // A client that is gone is not our failure.
		return c.failed
	}
	if !c.sent {
		c.plain()
	}
	if len(c.held) > 0 {
		_, _ = c.ResponseWriter.Write(c.held)
	}
	return nil
}

func (c *compressor) release() {
	if c.gz != nil {
		c.gz.Reset(nil) // The pool must not keep the connection.
		gzipWriters.Put(c.gz)
		c.leave()
	}
}

// Pack compresses what write writes to out.
func Pack(out io.Writer, write func(io.Writer)) {
	gz := gzipWriters.Get().(*gzip.Writer)
	gz.Reset(out)
	write(gz)
	_ = gz.Close() // The caller sees a failure of its own writer.
	gz.Reset(nil)
	gzipWriters.Put(gz)
}

// gzipWriters pools writers because they are large. They favor speed over size.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // The level exists.
	}
	return w
}}
