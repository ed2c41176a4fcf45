// Package schematest makes objects for tests. Only tests import it.
package schematest

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
)

// Object returns an object. A spec that is a string is JSON; any other one is encoded. The
// object need not pass validation.
func Object(t testing.TB, kind, namespace, name string, spec any) *schema.Object {
	t.Helper()
	of, ok := schema.KindByName(kind)
	if !ok {
		t.Fatalf("no kind %s", kind)
	}
	text, isText := spec.(string)
	if !isText {
		encoded, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		text = string(encoded)
	}
	o, err := schema.New(of, metav1.ObjectMeta{Name: name, Namespace: namespace}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}
