package render

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
)

// MetadataType is the type of objects that are reduced to their metadata.
var MetadataType = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()}

// MetadataOf returns an object that is reduced to its metadata.
func MetadataOf(meta metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: MetadataType, ObjectMeta: meta}
}

// WriteMetadataList answers with the metadata of objects.
func WriteMetadataList(w http.ResponseWriter, r *http.Request, meta metav1.ListMeta, objs []*schema.Object) error {
	head, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("encode list: %w", err)
	}
	return answer.Stream(w, http.StatusOK, wire.MetadataList, rowLength*len(objs), func(out *bufio.Writer) error {
		_, _ = fmt.Fprintf(out, `{"kind":"%sList","apiVersion":%q,"metadata":%s,"items":[`, MetadataType.Kind, MetadataType.APIVersion, head)
		if err := writeItems(r.Context(), out, objs, func(o *schema.Object) any { return MetadataOf(o.Meta) }); err != nil {
			return err
		}
		_, _ = out.WriteString("]}")
		return nil
	})
}
