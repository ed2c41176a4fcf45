package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3gen"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
)

// Shape is a schema of an OpenAPI document, with the definitions that it refers to.
type Shape struct {
	schema      Node
	definitions map[string]Node
}

// AnyShape is the shape of objects that are described only in words.
var AnyShape = Shape{schema: Node{"type": "object"}}

// statusShape is the shape of every failure.
var statusShape = defined("io.k8s.apimachinery.pkg.apis.meta.v1.Status", ShapeOf(metav1.Status{}))

// defined returns a reference to a shape by name.
func defined(name string, s Shape) Shape {
	definitions := map[string]Node{name: s.schema}
	maps.Copy(definitions, s.definitions)
	return Shape{Node{"$ref": "#/components/schemas/" + name}, definitions}
}

// ObjectShape returns the shape of a kind's objects in one version.
func ObjectShape(kind *schema.Kind, version string) Shape {
	return defined(definitionOf(kind, version), Shape{schema: kind.ObjectOpenAPI(version)})
}

// ListShape returns the shape of a kind's lists in one version.
func ListShape(kind *schema.Kind, version string) Shape {
	one, list := ObjectShape(kind, version), ShapeOf(metav1.List{})
	properties := list.schema["properties"].(map[string]any)
	properties["items"] = Node{"type": "array", "items": one.schema}
	list.schema["x-kubernetes-group-version-kind"] = []Node{GVK(kind.In(version), kind.Kind+"List")}
	list.definitions = one.definitions
	return defined(definitionOf(kind, version)+"List", list)
}

// ActionShape returns the shape of an object that can only be created, of a kind of an
// apiVersion. It encodes a value like v.
func ActionShape(apiVersion, kind string, v any) Shape {
	shape := ShapeOf(v)
	shape.schema["x-kubernetes-group-version-kind"] = []Node{GVK(apiVersion, kind)}
	return defined(strings.ReplaceAll(apiVersion, "/", ".")+"."+kind, shape)
}

func definitionOf(kind *schema.Kind, version string) string {
	return kind.Group + "." + version + "." + kind.Kind
}

// AnswerOf returns the content of an answer that encodes a value like v.
func AnswerOf(v any) Content { return Content{wire.ObjectTypes, ShapeOf(v)} }

// ShapeOf returns the shape of a Go value as JSON. It panics if there is none.
func ShapeOf(v any) Shape {
	ref, err := openapi3gen.NewSchemaRefForValue(v, openapi3.Schemas{}, openapi3gen.SchemaCustomizer(customize))
	if err != nil {
		panic(fmt.Sprintf("the shape of %T: %v", v, err))
	}
	text, err := json.Marshal(ref)
	if err != nil {
		panic(err)
	}
	var out Node
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return Shape{schema: out}
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
