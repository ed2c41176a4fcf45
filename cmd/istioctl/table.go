package main

import (
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// tableStyle is what a table shows beside the kind's own columns.
type tableStyle struct {
	wide       bool
	namespaces bool // a column for the namespace
	kinds      bool // "routerule.config.istio.io/x" as name
}

// tableWriter prints objects of one kind as rows of one table, however often
// it is called.
type tableWriter struct {
	kind    *schema.Kind
	printer printers.ResourcePrinter
	out     interface {
		io.Writer
		Flush() error
	}
}

func newTable(w io.Writer, kind *schema.Kind, style tableStyle) *tableWriter {
	return &tableWriter{
		kind: kind,
		out:  printers.GetNewTabWriter(w),
		printer: printers.NewTablePrinter(printers.PrintOptions{
			Wide:          style.wide,
			WithNamespace: style.namespaces,
			WithKind:      style.kinds,
			Kind:          gvk.GroupKind{Group: kind.Group, Kind: kind.Kind},
		}),
	}
}

func (t *tableWriter) objects(objects []*schema.Object) error {
	return t.print(t.table(objects))
}

// event prints a row that begins with the type of the change.
func (t *tableWriter) event(e store.Event) error {
	return t.print(&metav1.WatchEvent{
		Type:   string(e.Type),
		Object: runtime.RawExtension{Object: t.table([]*schema.Object{e.Object})},
	})
}

func (t *tableWriter) print(table runtime.Object) error {
	if err := t.printer.PrintObj(table, t.out); err != nil {
		return err
	}
	return t.out.Flush()
}

func (t *tableWriter) table(objects []*schema.Object) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: schema.TableColumns(t.kind)}
	now := time.Now()
	for _, o := range objects {
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  schema.TableCells(o, now),
			Object: runtime.RawExtension{Object: &metav1.PartialObjectMetadata{ObjectMeta: o.Meta}},
		})
	}
	return table
}
