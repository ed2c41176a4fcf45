package answer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/pilot-api/pilot-api/server/wire"
)

// WriteJSON answers 200 with a value that is not a stored object.
func WriteJSON(w http.ResponseWriter, r *http.Request, value any) error {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML)
	if err != nil {
		return err
	}
	return WriteValue(w, http.StatusOK, f, value)
}

// WriteValue answers with a value as JSON or, if f says so, as YAML.
func WriteValue(w http.ResponseWriter, code int, f wire.Format, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return WriteText(w, code, f, body)
}

// WriteText answers with a JSON text, as it is or converted to YAML. It reports no
// write errors, because a client that is gone is not our failure.
func WriteText(w http.ResponseWriter, code int, f wire.Format, body []byte) error {
	if f == wire.YAML {
		return Stream(w, code, f, len(body), func(out *bufio.Writer) error { return wire.WriteYAML(out, body) })
	}
	h := w.Header()
	h.Set("Content-Type", f.ContentType())
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body)
	return nil
}

// Stream answers with the output of write, which is never all in memory. length
// is its approximate length in bytes; large answers are paced. A client that is
// gone is not our failure.
func Stream(w http.ResponseWriter, code int, f wire.Format, length int, write func(*bufio.Writer) error) error {
	answer := func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", f.ContentType())
		w.WriteHeader(code)
		return Buffered(w, write)
	}
	if by := pacedBy(w); by != nil && length >= largeAnswer {
		return by.paced(w, answer)
	}
	return answer(w)
}

// Buffered combines many small writes into a few large ones.
func Buffered(w io.Writer, write func(*bufio.Writer) error) error {
	out := Buffers.Get().(*bufio.Writer)
	out.Reset(w)
	defer func() {
		out.Reset(nil) // The pool must not keep the connection.
		Buffers.Put(out)
	}()
	if err := write(out); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	if p, ok := w.(*pacedWriter); ok {
		p.stop()
	}
	_ = out.Flush()
	return nil
}

// Buffers pools writers of 64 KiB, as *bufio.Writer. Reset one before its use, and again to
// nil before you put it back.
var Buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}
