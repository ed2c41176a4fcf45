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

// anyShape is the shape of objects that are described only in words.
var anyShape = shape{schema: node{"type": "object"}}

// statusShape is the shape of every failure.
var statusShape = defined("io.k8s.apimachinery.pkg.apis.meta.v1.Status", shapeOf(metav1.Status{}))

// defined returns a reference to a shape by name.
func defined(name string, s shape) shape {
	definitions := map[string]node{name: s.schema}
	maps.Copy(definitions, s.definitions)
	return shape{node{"$ref": "#/components/schemas/" + name}, definitions}
}

// objectShape returns the shape of a kind's objects.
func objectShape(kind *schema.Kind) shape {
	return defined(definitionOf(kind), shape{schema: kind.ObjectOpenAPI()})
}

// listShape returns the shape of a kind's lists.
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

// answerOf returns the content of an answer that encodes a value like v.
func answerOf(v any) content { return content{objectTypes, shapeOf(v)} }

// shapeOf returns the shape of a Go value as JSON. It panics if there is none.
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

// customize corrects schemas of types whose encoding does not follow from their
// fields.
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
