package server

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3gen"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
)

// shape is a schema of an OpenAPI document, with the definitions that it refers to.
type shape struct {
	schema      node
	definitions map[string]node
}

// anyShape is what is described in words.
var anyShape = shape{schema: node{"type": "object"}}

// statusShape is that of every failure.
var statusShape = defined("io.k8s.apimachinery.pkg.apis.meta.v1.Status", shapeOf(metav1.Status{}))

// defined is a shape by its name.
func defined(name string, s shape) shape {
	definitions := map[string]node{name: s.schema}
	maps.Copy(definitions, s.definitions)
	return shape{node{"$ref": "#/components/schemas/" + name}, definitions}
}

// objectShape is that of the objects of a kind.
func objectShape(kind *schema.Kind) shape {
	return defined(definitionOf(kind), shape{schema: kind.ObjectOpenAPI()})
}

// listShape is that of their lists.
func listShape(kind *schema.Kind) shape {
	one, list := objectShape(kind), shapeOf(metav1.List{})
	properties := list.schema["properties"].(map[string]any)
	properties["items"] = node{"type": "array", "items": one.schema}
	list.schema["x-kubernetes-group-version-kind"] = []node{gvk(kind, "List")}
	list.definitions = one.definitions
	return defined(definitionOf(kind)+"List", list)
}

func definitionOf(kind *schema.Kind) string {
	return kind.Group + "." + kind.Version + "." + kind.Kind
}

// answerOf is an answer that is made of a value of ours.
func answerOf(v any) content { return content{objectTypes, shapeOf(v)} }

// shapeOf is that of the JSON of a Go value. It panics for one that has none.
func shapeOf(v any) shape {
	ref, err := openapi3gen.NewSchemaRefForValue(v, openapi3.Schemas{}, openapi3gen.SchemaCustomizer(customize))
	if err != nil {
		panic(fmt.Sprintf("the shape of %T: %v", v, err))
	}
	text, err := json.Marshal(ref)
	if err != nil {
		panic(err)
	}
	var out node
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return shape{schema: out}
}

// customize mends what cannot be seen of the fields of a type: how it writes itself.
func customize(_ string, t reflect.Type, _ reflect.StructTag, s *openapi3.Schema) error {
	writes := func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) }
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		*s = *openapi3.NewDateTimeSchema()
	case writes(reflect.TypeFor[encoding.TextMarshaler]()) && !writes(reflect.TypeFor[json.Marshaler]()):
		*s = *openapi3.NewStringSchema()
	case t.Kind() == reflect.Slice && s.Type.Is("array"):
		s.Nullable = true
	}
	return nil
}
