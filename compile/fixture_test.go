package compile_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// objects decodes a YAML text of any number of documents.
func objects(t testing.TB, text string) []*schema.Object {
	t.Helper()
	var out []*schema.Object
	for _, doc := range schema.Split([]byte(text), "objects.yaml") {
		objs, problems, _ := doc.Objects(t.Context(), schema.DefaultNamespace)
		if err := problems.Err(); err != nil {
			t.Fatalf("bad test input:\n%v", err)
		}
		out = append(out, objs...)
	}
	return out
}

// proxy is that of a node, with what it states behind.
func proxy(t testing.TB, node string) mesh.Proxy {
	t.Helper()
	return meshgen.Proxy(t, node)
}

func objectOf(t testing.TB, kind *schema.Kind, namespace, name string, spec []byte) *schema.Object {
	t.Helper()
	o, err := schema.New(kind, metav1.ObjectMeta{Namespace: namespace, Name: name}, spec)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// object is one of the default namespace that need not pass validation.
func object(t testing.TB, kind, name string, spec map[string]any) *schema.Object {
	return objectIn(t, schema.DefaultNamespace, kind, name, spec)
}

func objectIn(t testing.TB, namespace, kind, name string, spec map[string]any) *schema.Object {
	k, ok := schema.KindByName(kind)
	if !ok {
		t.Fatalf("no kind %s", kind)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	o := objectOf(t, k, namespace, name, text)
	if _, err := o.Spec(); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", strconv.Quote(name), err))
	}
	return o
}

// decoded is the spec of an object, to be changed.
func decoded(t testing.TB, o *schema.Object) spec {
	t.Helper()
	var out spec
	if err := json.Unmarshal(o.SpecJSON(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// outboundClusters are those of services.
func outboundClusters(config *ir.Config) []*ir.Cluster {
	return slices.DeleteFunc(slices.Clone(config.Clusters), func(c *ir.Cluster) bool { return !strings.HasPrefix(c.Name, "out.") })
}
