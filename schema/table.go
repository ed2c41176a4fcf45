package schema

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Table lays objects of one kind out in rows: name, the kind's own columns,
// age at the given time. Server and command line both show this table. Every
// row carries its object's metadata.
func Table(kind *Kind, objects []*Object, now time.Time) *metav1.Table {
	table := &metav1.Table{
		TypeMeta:          metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()},
		ColumnDefinitions: tableColumns(kind),
		Rows:              make([]metav1.TableRow, len(objects)),
	}
	for i, o := range objects {
		table.Rows[i] = tableRow(o, now)
	}
	return table
}

func tableColumns(kind *Kind) []metav1.TableColumnDefinition {
	columns := []metav1.TableColumnDefinition{{
		Name: "Name", Type: "string", Format: "name",
		Description: "Name of the object, unique within its kind and namespace.",
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

func tableRow(o *Object, now time.Time) metav1.TableRow {
	cells := make([]any, 0, len(o.Kind.Columns)+2)
	cells = append(cells, o.Meta.Name)
	for _, c := range o.Kind.Columns {
		cells = append(cells, c.Cell(o))
	}
	cells = append(cells, age(o.Meta.CreationTimestamp, now))
	return metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()},
		ObjectMeta: o.Meta,
	}}}
}

func age(created metav1.Time, now time.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}
