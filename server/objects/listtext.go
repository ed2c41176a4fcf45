package objects

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/render"
	"github.com/pilot-api/pilot-api/server/status"
	"github.com/pilot-api/pilot-api/server/wire"
)

// listText is a list in JSON that is encoded item by item. Its tag and its length
// are known before it is written.
type listText struct {
	head     string
	version  string // of the kind
	revision string
	items    []*schema.Object
	statuses [][]byte
}

const listTail = "]}"

func newListText(head, version string, meta metav1.ListMeta, items []*schema.Object, board *status.Table) *listText {
	return &listText{head: head, version: version, revision: meta.ResourceVersion, items: items, statuses: board.Texts(items)}
}

func (k *resource) listHead(meta metav1.ListMeta) (string, error) {
	text, err := json.Marshal(meta)
	if err != nil {
		return "", fmt.Errorf("encode list: %w", err)
	}
	return `{"kind":"` + k.Kind.Kind + `List","apiVersion":"` + k.Kind.In(k.Version) + `","metadata":` + string(text) + `,"items":[`, nil
}

func (t *listText) tag() string { return answer.TagOf(wire.JSON, t.revision, t.items, t.statuses) }

func (t *listText) size() int {
	size := len(t.head) + max(0, len(t.items)-1) + len(listTail)
	for i, o := range t.items {
		size += render.SizeWithStatus(o, t.version, t.statuses[i])
	}
	return size
}

// writeTo writes the list in a few large pieces. It reports no errors, because a
// client that is gone is not our failure.
func (t *listText) writeTo(w io.Writer) {
	_ = answer.Buffered(w, func(out *bufio.Writer) error {
		_, _ = out.WriteString(t.head)
		for i, o := range t.items {
			if i > 0 {
				_ = out.WriteByte(',')
			}
			_, _ = out.Write(render.AppendWithStatus(out.AvailableBuffer(), o, t.version, t.statuses[i]))
		}
		_, _ = out.WriteString(listTail)
		return nil
	})
}

// answerAgain answers with a kept list if the state has not changed, without
// listing anything.
func (k *resource) answerAgain(w http.ResponseWriter, r *http.Request) (answered bool, err error) {
	name := listNameOf(r, answer.TakesPacked(w))
	if !wire.IsRead(r) || !k.kept.has(name) {
		return false, nil
	}
	newest, err := k.opts.Reads.Revision(r.Context())
	if err != nil {
		return false, err
	}
	kept, done := k.kept.still(name, stateOf(k.Recent(), strconv.FormatInt(newest, 10)))
	defer done()
	if kept == nil {
		return false, nil
	}
	writeKept(w, r, kept, name.gzip)
	return true, nil
}

// writeListJSON answers with a list, either a kept one or one encoded for this
// request.
func (k *resource) writeListJSON(w http.ResponseWriter, r *http.Request, meta metav1.ListMeta, items []*schema.Object) error {
	head, err := k.listHead(meta)
	if err != nil {
		return err
	}
	board := k.Recent()
	compose := func() *listText { return newListText(head, k.Version, meta, items, board) }
	// Only one client asks for a page after the first.
	if wire.IsRead(r) && len(items) >= keptListFrom && !wire.Query(r).Has("continue") {
		name := listNameOf(r, answer.TakesPacked(w))
		kept, done := k.kept.text(r.Context(), name, stateOf(board, meta.ResourceVersion), compose)
		defer done()
		if kept != nil {
			writeKept(w, r, kept, name.gzip)
			return nil
		}
	}
	list := compose()
	if answer.Unchanged(w, r, list.tag()) {
		return nil
	}
	h := w.Header()
	h.Set("Content-Type", wire.JSON.ContentType())
	h.Set("Content-Length", strconv.Itoa(list.size()))
	w.WriteHeader(http.StatusOK)
	list.writeTo(w)
	return nil
}

// writeKept answers with a kept text.
func writeKept(w http.ResponseWriter, r *http.Request, kept *keptList, gzip bool) {
	if answer.Unchanged(w, r, kept.tag) {
		return
	}
	h := w.Header()
	h.Set("Content-Type", wire.JSON.ContentType())
	h.Set("Content-Length", strconv.Itoa(len(kept.text)))
	if gzip {
		w = answer.Packed(w)
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(kept.text)
}
