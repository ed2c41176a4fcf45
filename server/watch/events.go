package watch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/render"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// eventEncoder writes the frames of a watch: {"type":…,"object":…}, one per line.
// The object is its stored bytes, or a table with one row.
type eventEncoder struct {
	k       *render.Resource
	format  wire.Format
	include metav1.IncludeObjectPolicy
	begun   bool // whether the columns of the table were sent
}

// event writes one event. whole means that it is the last one of its revision.
func (e *eventEncoder) event(out *bufio.Writer, kind string, o *schema.Object, whole bool) error {
	switch {
	case e.format == wire.Table:
		return e.table(out, kind, e.k.NewTable(metav1.ListMeta{ResourceVersion: o.Meta.ResourceVersion}, []*schema.Object{o}, e.include))
	case e.format == wire.Metadata:
		text, err := json.Marshal(render.MetadataOf(o.Meta))
		if err != nil {
			return fmt.Errorf("encode metadata: %w", err)
		}
		return e.frame(out, kind, text)
	case e.format == wire.Events && whole:
		writeID(out, o.Meta.ResourceVersion)
	}
	return e.frame(out, kind, e.k.WithStatus(o))
}

// endOfState is the metadata of a bookmark that ends the initial events.
const endOfState = `,"annotations":{"` + metav1.InitialEventsAnnotationKey + `":"true"}`

// bookmark writes that everything up to a revision was sent. endsState adds that
// the initial events are complete.
func (e *eventEncoder) bookmark(out *bufio.Writer, revision int64, endsState bool) error {
	text := strconv.FormatInt(revision, 10)
	if e.format == wire.Table {
		return e.tableBookmark(out, text, endsState)
	}
	more := ""
	if endsState {
		more = endOfState
	}
	if e.format == wire.Events {
		writeID(out, text)
	}
	of := e.k.TypeMeta()
	if e.format == wire.Metadata {
		of = render.MetadataType
	}
	return e.frame(out, store.BookmarkFrame, []byte(`{"kind":"`+of.Kind+`","apiVersion":"`+of.APIVersion+
		`","metadata":{"resourceVersion":"`+text+`"`+more+`}}`))
}

func (e *eventEncoder) failure(out *bufio.Writer, status *metav1.Status) error {
	text, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	if e.format == wire.Events && status.Code == http.StatusGone {
		writeID(out, "") // The browser starts over.
	}
	return e.frame(out, store.ErrorFrame, text)
}

// tableBookmark writes a table without rows, except at the end of the initial
// events: that annotation is part of an object's metadata, which only a row has.
func (e *eventEncoder) tableBookmark(out *bufio.Writer, revision string, endsState bool) error {
	t := e.k.NewTable(metav1.ListMeta{ResourceVersion: revision}, nil, e.include)
	if endsState {
		t.Rows = []metav1.TableRow{{
			Cells: make([]any, len(e.k.Columns())),
			Object: runtime.RawExtension{Object: render.MetadataOf(metav1.ObjectMeta{
				ResourceVersion: revision, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			})},
		}}
	}
	return e.table(out, store.BookmarkFrame, t)
}

// table writes a table event. Only the first one has the columns.
func (e *eventEncoder) table(out *bufio.Writer, kind string, t *metav1.Table) error {
	if !e.begun {
		t.ColumnDefinitions = e.k.Columns()
		e.begun = true
	}
	text, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode table: %w", err)
	}
	return e.frame(out, kind, text)
}

func (e *eventEncoder) frame(out *bufio.Writer, kind string, object []byte) error {
	if e.format == wire.Events {
		_, _ = out.WriteString("data: ")
	}
	_, _ = out.WriteString(`{"type":"` + kind + `","object":`)
	_, _ = out.Write(object)
	_, err := out.WriteString("}\n") // A bufio.Writer keeps its first error.
	if e.format == wire.Events {
		err = out.WriteByte('\n')
	}
	return err
}
