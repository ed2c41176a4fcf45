package objects

import (
	"bufio"
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/render"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// writeObject answers with one object.
func (k *resource) writeObject(w http.ResponseWriter, r *http.Request, code int, f wire.Format, o *schema.Object) error {
	one := []*schema.Object{o}
	switch f {
	case wire.Table:
		return k.WriteTable(w, r, code, metav1.ListMeta{ResourceVersion: o.Meta.ResourceVersion}, one)
	case wire.Metadata:
		return answer.WriteValue(w, code, f, render.MetadataOf(o.Meta))
	}
	statuses := k.Recent().Texts(one)
	if answer.Unchanged(w, r, answer.TagOf(f, o.Meta.ResourceVersion, one, statuses)) {
		return nil
	}
	return answer.WriteText(w, code, f, render.WithStatus(o, k.VersionOf(o), statuses[0]))
}

// writeList answers with a list.
func (k *resource) writeList(w http.ResponseWriter, r *http.Request, f wire.Format, list *store.List) error {
	meta := listMeta(list)
	switch f {
	case wire.Table:
		return k.WriteTable(w, r, http.StatusOK, meta, list.Items)
	case wire.MetadataList:
		return render.WriteMetadataList(w, r, meta, list.Items)
	case wire.YAML:
		statuses := k.Recent().Texts(list.Items)
		if answer.Unchanged(w, r, answer.TagOf(f, meta.ResourceVersion, list.Items, statuses)) {
			return nil
		}
		return answer.Stream(w, http.StatusOK, f, textLength(list.Items), func(out *bufio.Writer) error {
			return k.listYAML(r.Context(), out, meta, list.Items, statuses)
		})
	}
	return k.writeListJSON(w, r, meta, list.Items)
}

// textLength returns the length of objs as JSON, in bytes.
func textLength(objs []*schema.Object) (length int) {
	for _, o := range objs {
		length += len(o.JSON())
	}
	return length
}

// listYAML writes a list as YAML. It stops when ctx ends.
func (k *resource) listYAML(ctx context.Context, out *bufio.Writer, meta metav1.ListMeta, items []*schema.Object, statuses [][]byte) error {
	_, _ = fmt.Fprintf(out, "kind: %sList\napiVersion: %s\nmetadata:\n  resourceVersion: %q\n", k.Kind.Kind, k.Kind.In(k.Version), meta.ResourceVersion)
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
		if err := wire.WriteYAMLItem(out, render.WithStatus(o, k.Version, statuses[i])); err != nil {
			return err
		}
	}
	return nil
}
