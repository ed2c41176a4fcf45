package printer

import (
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Style selects what a table shows in addition to the kind's own columns.
type Style struct {
	Wide       bool
	Namespaces bool // a column for the namespace
	Kinds      bool // "routerule.config.istio.io/x" as name
	Events     bool // a column for the type of the change
	RowOptions
}

// TableWriter prints objects of one kind as rows of one table, over any number of
// calls. Columns only grow.
type TableWriter struct {
	kind    *schema.Kind
	style   Style
	printer printers.ResourcePrinter
	// far returns the cell of a column for the proxies' progress; nil for no column.
	far    func(*schema.Object) string
	target *redirect
	out    interface {
		io.Writer
		Flush() error
	}
}

// redirect is a writer whose target can be changed.
type redirect struct{ io.Writer }

// NewTable returns a table of objects of one kind.
func NewTable(w io.Writer, kind *schema.Kind, style Style) *TableWriter {
	target := &redirect{w}
	return &TableWriter{kind: kind, style: style, printer: style.printer(kind), target: target, out: printers.GetNewTabWriter(target)}
}

func (s Style) printer(kind *schema.Kind) printers.ResourcePrinter {
	return printers.NewTablePrinter(printers.PrintOptions{
		Wide:          s.Wide,
		NoHeaders:     s.NoHeaders,
		ShowLabels:    s.ShowLabels,
		WithNamespace: s.Namespaces,
		WithKind:      s.Kinds,
		Kind:          gvk.GroupKind{Group: kind.Group, Kind: kind.Kind},
	})
}

// PrintStated prints objects with the proxies' progress, if it is known.
func (t *TableWriter) PrintStated(all []client.ObjectWithStatus) error {
	objects := make([]*schema.Object, len(all))
	known := map[schema.Key]string{}
	for i, one := range all {
		objects[i] = one.Object
		far, err := howFar(one)
		if err != nil {
			return err
		}
		if far != "" {
			known[one.Key()] = far
		}
	}
	if len(known) > 0 {
		t.far = func(o *schema.Object) string { return known[o.Key()] }
	}
	return t.print(t.printer, t.table(objects))
}

// howFar returns the proxies' progress with an object, "" if it is not known.
func howFar(o client.ObjectWithStatus) (string, error) {
	status, err := o.Status()
	if err != nil || status == nil {
		return "", err
	}
	return status.Summary(), nil
}

// Event prints the row of a changed object.
func (t *TableWriter) Event(e store.Event) error {
	return t.print(t.printer, t.row(e.Type, e.Object))
}

// Fit makes the columns wide enough for events of these objects by printing the
// objects to a discarding writer.
func (t *TableWriter) Fit(objects []*schema.Object) error {
	w := t.target.Writer
	defer func() { t.target.Writer = w }()
	t.target.Writer = io.Discard
	p := t.style.printer(t.kind)
	for _, o := range objects {
		if err := t.print(p, t.row(store.Modified, o)); err != nil {
			return err
		}
	}
	return nil
}

func (t *TableWriter) row(what store.EventType, o *schema.Object) runtime.Object {
	table := t.table([]*schema.Object{o})
	if !t.style.Events {
		return table
	}
	return &metav1.WatchEvent{Type: string(what), Object: runtime.RawExtension{Object: table}}
}

func (t *TableWriter) print(p printers.ResourcePrinter, table runtime.Object) error {
	if err := p.PrintObj(table, t.out); err != nil {
		return err
	}
	return t.out.Flush()
}

func (t *TableWriter) table(objects []*schema.Object) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: schema.TableColumns(t.kind)}
	now, cells := time.Now(), schema.TableCells
	if t.style.Wide {
		cells = schema.WideTableCells
	}
	if t.far != nil {
		table.ColumnDefinitions = schema.BeforeAge(table.ColumnDefinitions, schema.ProgrammedColumn())
	}
	for _, o := range objects {
		row := cells(o, now)
		if t.far != nil {
			row = schema.BeforeAge[any](row, t.far(o))
		}
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  row,
			Object: runtime.RawExtension{Object: &metav1.PartialObjectMetadata{ObjectMeta: o.Meta}},
		})
	}
	return table
}

// RowOptions are the options for a table's rows, without those for its columns.
type RowOptions struct {
	NoHeaders  bool
	ShowLabels bool
}
