package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
)

// WriteTable answers with the objects as rows. kubectl prints unknown kinds from such
// tables.
func (k *Resource) WriteTable(w http.ResponseWriter, r *http.Request, code int, meta metav1.ListMeta, objs []*schema.Object) error {
	include, err := IncludeObjectParam(r)
	if err != nil {
		return err
	}
	head := k.NewTable(meta, nil, include)
	head.ColumnDefinitions = k.Columns()
	text, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("encode table: %w", err)
	}
	before, isLast := bytes.CutSuffix(text, []byte("]}"))
	if !isLast {
		return errors.New("encode table: the rows are not its last field")
	}
	now := time.Now()
	return answer.Stream(w, code, wire.Table, rowLength*len(objs), func(out *bufio.Writer) error {
		_, _ = out.Write(before)
		if err := writeItems(r.Context(), out, objs, func(o *schema.Object) any { return k.newRow(o, now, include) }); err != nil {
			return err
		}
		_, _ = out.WriteString("]}")
		return nil
	})
}

// NewTable returns a table with the objects as rows, without columns.
func (k *Resource) NewTable(meta metav1.ListMeta, objs []*schema.Object, include metav1.IncludeObjectPolicy) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()},
		ListMeta: meta,
		Rows:     make([]metav1.TableRow, len(objs)),
	}
	now := time.Now()
	for i, o := range objs {
		t.Rows[i] = k.newRow(o, now, include)
	}
	return t
}

// Columns returns the columns of the kind and, if there are proxies, one for the
// status.
func (k *Resource) Columns() []metav1.TableColumnDefinition {
	columns := schema.TableColumns(k.Kind)
	if k.Board == nil && !k.AreStored() || k.Kind.Flat {
		return columns
	}
	return schema.BeforeAge(columns, schema.ProgrammedColumn())
}

func (k *Resource) newRow(o *schema.Object, now time.Time, include metav1.IncludeObjectPolicy) metav1.TableRow {
	cells := schema.TableCells(o, now)
	if table := k.Recent(); table != nil && !o.Kind.Flat {
		status, _ := table.Of(o)
		cells = schema.BeforeAge[any](cells, status.Summary())
	}
	for i, cell := range cells {
		if text, ok := cell.(string); ok {
			cells[i] = terminal.Line(text) // kubectl prints it as it is.
		}
	}
	return metav1.TableRow{Cells: cells, Object: k.rowObject(o, include)}
}

// rowObject returns the object beside the cells of a row.
func (k *Resource) rowObject(o *schema.Object, include metav1.IncludeObjectPolicy) runtime.RawExtension {
	switch include {
	case metav1.IncludeNone:
		return runtime.RawExtension{}
	case metav1.IncludeObject:
		return runtime.RawExtension{Raw: k.WithStatus(o)}
	}
	return runtime.RawExtension{Object: MetadataOf(o.Meta)}
}

// IncludeObjectParam returns which part of the object the client wants in each row. Unset
// means the metadata.
func IncludeObjectParam(r *http.Request) (metav1.IncludeObjectPolicy, error) {
	v, err := wire.ChoiceParam(wire.Query(r), "includeObject",
		string(metav1.IncludeNone), string(metav1.IncludeMetadata), string(metav1.IncludeObject))
	return metav1.IncludeObjectPolicy(v), err
}
