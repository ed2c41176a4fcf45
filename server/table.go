package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilot-api/pilot-api/schema"
)

// writeTable answers with the objects as rows, which is how kubectl prints
// kinds that it has never heard of.
func (k *resource) writeTable(w http.ResponseWriter, r *http.Request, code int, revision string, objs []*schema.Object) error {
	include, err := includeObjectParam(r)
	if err != nil {
		return err
	}
	t := newTable(revision, objs, include)
	t.ColumnDefinitions = schema.TableColumns(k.kind)
	body, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode table: %w", err)
	}
	return writeText(w, code, formatTable, body)
}

// newTable has the objects as rows, without columns.
func newTable(revision string, objs []*schema.Object, include metav1.IncludeObjectPolicy) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()},
		ListMeta: metav1.ListMeta{ResourceVersion: revision},
		Rows:     make([]metav1.TableRow, len(objs)),
	}
	now := time.Now()
	for i, o := range objs {
		t.Rows[i] = metav1.TableRow{Cells: schema.TableCells(o, now), Object: rowObject(o, include)}
	}
	return t
}

// rowObject is what stands beside the cells of a row.
func rowObject(o *schema.Object, include metav1.IncludeObjectPolicy) runtime.RawExtension {
	switch include {
	case metav1.IncludeNone:
		return runtime.RawExtension{}
	case metav1.IncludeObject:
		return runtime.RawExtension{Raw: o.JSON()}
	}
	return runtime.RawExtension{Object: &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()},
		ObjectMeta: o.Meta,
	}}
}

// includeObjectParam is what the client wants beside the cells; unset is the
// metadata.
func includeObjectParam(r *http.Request) (metav1.IncludeObjectPolicy, error) {
	v, err := choiceParam(r.URL.Query(), "includeObject",
		string(metav1.IncludeNone), string(metav1.IncludeMetadata), string(metav1.IncludeObject))
	return metav1.IncludeObjectPolicy(v), err
}
