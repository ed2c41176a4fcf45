package server

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// writeJSON answers 200 with a value that is not a stored object.
func writeJSON(w http.ResponseWriter, r *http.Request, value any) error {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML)
	if err != nil {
		return err
	}
	return writeValue(w, http.StatusOK, f, value)
}

func writeValue(w http.ResponseWriter, code int, f wire.Format, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return writeText(w, code, f, body)
}

// writeText answers with a JSON text, as it is or converted to YAML. It reports no
// write errors, because a client that is gone is not our failure.
func writeText(w http.ResponseWriter, code int, f wire.Format, body []byte) error {
	if f == wire.YAML {
		return answerBy(w, code, f, len(body), func(out *bufio.Writer) error { return wire.WriteYAML(out, body) })
	}
	h := w.Header()
	h.Set("Content-Type", f.ContentType())
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body)
	return nil
}

// writeObject answers with one object.
func (k *resource) writeObject(w http.ResponseWriter, r *http.Request, code int, f wire.Format, o *schema.Object) error {
	one := []*schema.Object{o}
	switch f {
	case wire.Table:
		return k.writeTable(w, r, code, metav1.ListMeta{ResourceVersion: o.Meta.ResourceVersion}, one)
	case wire.Metadata:
		return writeValue(w, code, f, metadataOf(o.Meta))
	}
	statuses := k.board().Texts(one)
	if unchanged(w, r, tagOf(f, o.Meta.ResourceVersion, one, statuses)) {
		return nil
	}
	return writeText(w, code, f, withStatus(o, k.versionOf(o), statuses[0]))
}

// writeList answers with a list.
func (k *resource) writeList(w http.ResponseWriter, r *http.Request, f wire.Format, list *store.List) error {
	meta := listMeta(list)
	switch f {
	case wire.Table:
		return k.writeTable(w, r, http.StatusOK, meta, list.Items)
	case wire.MetadataList:
		return writeMetadataList(w, r, meta, list.Items)
	case wire.YAML:
		statuses := k.board().Texts(list.Items)
		if unchanged(w, r, tagOf(f, meta.ResourceVersion, list.Items, statuses)) {
			return nil
		}
		return answerBy(w, http.StatusOK, f, textLength(list.Items), func(out *bufio.Writer) error {
			return k.listYAML(r.Context(), out, meta, list.Items, statuses)
		})
	}
	return k.writeListJSON(w, r, meta, list.Items)
}

// rowLength is the approximate length, in bytes, of a table row or of an object's
// metadata in an answer.
const rowLength = 512

// textLength returns the length of objs as JSON, in bytes.
func textLength(objs []*schema.Object) (length int) {
	for _, o := range objs {
		length += len(o.JSON())
	}
	return length
}

// answerBy answers with the output of write, which is never all in memory. length
// is its approximate length in bytes; large answers are paced. A client that is
// gone is not our failure.
func answerBy(w http.ResponseWriter, code int, f wire.Format, length int, write func(*bufio.Writer) error) error {
	answer := func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", f.ContentType())
		w.WriteHeader(code)
		return buffered(w, write)
	}
	if by := pacedBy(w); by != nil && length >= largeAnswer {
		return by.paced(w, answer)
	}
	return answer(w)
}

// writeItems writes item(o) for each object of a list. It stops when ctx ends.
func writeItems(ctx context.Context, out *bufio.Writer, objs []*schema.Object, item func(*schema.Object) any) error {
	for i, o := range objs {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		text, err := json.Marshal(item(o))
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		_, _ = out.Write(text)
	}
	return nil
}

// buffered combines many small writes into a few large ones.
func buffered(w io.Writer, write func(*bufio.Writer) error) error {
	out := streamBuffers.Get().(*bufio.Writer)
	out.Reset(w)
	defer func() {
		out.Reset(nil) // The pool must not keep the connection.
		streamBuffers.Put(out)
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

var streamBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// listYAML writes a list as YAML. It stops when ctx ends.
func (k *resource) listYAML(ctx context.Context, out *bufio.Writer, meta metav1.ListMeta, items []*schema.Object, statuses [][]byte) error {
	_, _ = fmt.Fprintf(out, "kind: %sList\napiVersion: %s\nmetadata:\n  resourceVersion: %q\n", k.kind.Kind, k.kind.In(k.version), meta.ResourceVersion)
	if meta.Continue != "" {
		_, _ = fmt.Fprintf(out, "  continue: %q\n", meta.Continue)
	}
	if n := meta.RemainingItemCount; n != nil {
		_, _ = fmt.Fprintf(out, "  remainingItemCount: %d\n", *n)
	}
	_, _ = out.WriteString("items:")
	if len(items) == 0 {
		_, _ = out.WriteString(" []")
	}
	_ = out.WriteByte('\n')
	for i, o := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := wire.WriteYAMLItem(out, withStatus(o, k.version, statuses[i])); err != nil {
			return err
		}
	}
	return nil
}
