package server

import (
	"bufio"
	"context"
	"fmt"
	"net/http"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeObject answers with one object.
func (k *resource) writeObject(w http.ResponseWriter, r *http.Request, code int, f wire.Format, o *schema.Object) error {
	one := []*schema.Object{o}
	switch f {
	case wire.Table:
		return k.writeTable(w, r, code, metav1.ListMeta{ResourceVersion: o.Meta.ResourceVersion}, one)
	case wire.Metadata:
		return writeValue(w, code, f, metadataOf(o.Meta))
	}
	statuses := k.recent().Texts(one)
	if unchanged(w, r, tagOf(f, o.Meta.ResourceVersion, one, statuses)) {
		return nil
	}
	return writeText(w, code, f, withStatus(o, k.versionOf(o), statuses[0]))
}

// writeList answers with a list.
func (k *resource) writeList(w http.ResponseWriter, r *http.Request, f wire.Format, list *store.List) error {
	meta := listMeta(list)
	switch f {
	case wire.Table:
		return k.writeTable(w, r, http.StatusOK, meta, list.Items)
	case wire.MetadataList:
		return writeMetadataList(w, r, meta, list.Items)
	case wire.YAML:
		statuses := k.recent().Texts(list.Items)
		if unchanged(w, r, tagOf(f, meta.ResourceVersion, list.Items, statuses)) {
			return nil
		}
		return answerBy(w, http.StatusOK, f, textLength(list.Items), func(out *bufio.Writer) error {
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
	_, _ = fmt.Fprintf(out, "kind: %sList\napiVersion: %s\nmetadata:\n  resourceVersion: %q\n", k.kind.Kind, k.kind.In(k.version), meta.ResourceVersion)
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
		if err := wire.WriteYAMLItem(out, withStatus(o, k.version, statuses[i])); err != nil {
			return err
		}
	}
	return nil
}
