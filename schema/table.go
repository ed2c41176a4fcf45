package schema

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// TableColumns returns the columns that the server and the command line show for a
// kind: its own between the two that all kinds have. Columns that are shown only on
// request have priority 1.
func TableColumns(kind *Kind) []metav1.TableColumnDefinition {
	columns := []metav1.TableColumnDefinition{{
		Name: "Name", Type: "string", Format: "name",
		Description: "Name of the object, unique in its kind and namespace.",
	}}
	for _, c := range kind.Columns {
		column := metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Description: c.Description}
		if c.Wide {
			column.Priority = 1
		}
		columns = append(columns, column)
	}
	return append(columns, metav1.TableColumnDefinition{
		Name: "Age", Type: "string", Description: "Time since the object was created.",
	})
}

// TableCells returns an object's cells under TableColumns, with its age at now.
// Long lists are cut off.
func TableCells(o *Object, now time.Time) []any {
	return cells(o, now, func(c Column) func(*Object) string {
		if c.Short != nil {
			return c.Short
		}
		return c.Cell
	})
}

// WideTableCells is TableCells with complete lists.
func WideTableCells(o *Object, now time.Time) []any {
	return cells(o, now, func(c Column) func(*Object) string { return c.Cell })
}

func cells(o *Object, now time.Time, text func(Column) func(*Object) string) []any {
	cells := make([]any, 0, len(o.Kind.Columns)+2)
	cells = append(cells, o.Meta.Name)
	for _, c := range o.Kind.Columns {
		cells = append(cells, text(c)(o))
	}
	return append(cells, age(o.Meta.CreationTimestamp, now))
}

func age(created metav1.Time, now time.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}
