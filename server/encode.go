package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// writeJSON answers 200 with a value that is no stored object.
func writeJSON(w http.ResponseWriter, r *http.Request, value any) error {
	f, err := negotiate(r, formatJSON, formatYAML)
	if err != nil {
		return err
	}
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return writeText(w, http.StatusOK, f, body)
}

// writeText answers with a JSON text, as it is or turned into YAML. A client
// that is gone is no failure of ours, so writing has no error.
func writeText(w http.ResponseWriter, code int, f format, body []byte) error {
	if f == formatYAML {
		text, err := yaml.JSONToYAML(body)
		if err != nil {
			return fmt.Errorf("encode answer as YAML: %w", err)
		}
		body = text
	}
	h := w.Header()
	h.Set("Content-Type", f.contentType())
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body)
	return nil
}

// writeObject answers with one object.
func (k *resource) writeObject(w http.ResponseWriter, r *http.Request, code int, f format, o *schema.Object) error {
	if f != formatTable {
		return writeText(w, code, f, o.JSON())
	}
	return k.writeTable(w, r, code, o.Meta.ResourceVersion, []*schema.Object{o})
}

// writeList answers with a list, put together from the bytes of its items.
func (k *resource) writeList(w http.ResponseWriter, r *http.Request, f format, list *store.List) error {
	revision := strconv.FormatInt(list.Revision, 10)
	switch f {
	case formatTable:
		return k.writeTable(w, r, http.StatusOK, revision, list.Items)
	case formatYAML:
		return writeText(w, http.StatusOK, f, k.listText(revision, list.Items))
	}
	head := k.listHead(revision)
	h := w.Header()
	h.Set("Content-Type", f.contentType())
	h.Set("Content-Length", strconv.Itoa(len(head)+itemsSize(list.Items)+len(listTail)))
	out := listBuffers.Get().(*bufio.Writer)
	out.Reset(w)
	defer func() {
		out.Reset(nil) // The pool must not keep the connection.
		listBuffers.Put(out)
	}()
	_, _ = out.WriteString(head)
	for i, o := range list.Items {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.Write(o.JSON())
	}
	_, _ = out.WriteString(listTail)
	_ = out.Flush()
	return nil
}

// listText is the whole text of a list in JSON.
func (k *resource) listText(revision string, items []*schema.Object) []byte {
	texts := make([][]byte, len(items))
	for i, o := range items {
		texts[i] = o.JSON()
	}
	return slices.Concat([]byte(k.listHead(revision)), bytes.Join(texts, []byte(",")), []byte(listTail))
}

const listTail = "]}"

// listBuffers make a few large writes of many small items.
var listBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

func (k *resource) listHead(revision string) string {
	return `{"kind":"` + k.kind.Kind + `List","apiVersion":"` + k.kind.APIVersion() +
		`","metadata":{"resourceVersion":"` + revision + `"},"items":[`
}

// itemsSize is the length of all items with the commas between them.
func itemsSize(items []*schema.Object) int {
	size := max(0, len(items)-1)
	for _, o := range items {
		size += len(o.JSON())
	}
	return size
}
