package schema

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Kubernetes keywords in the JSON Schemas, for lists with several writers: a set,
// or a map whose entries are identified by fields. All other lists are atomic:
// applying one replaces all of it.
const (
	listTypeKeyword = "x-kubernetes-list-type"
	listKeysKeyword = "x-kubernetes-list-map-keys"
)

// listType holds the values of the keywords for one list.
type listType struct {
	name string
	keys []any
}

type listTypeCompiler struct{}

func (listTypeCompiler) Compile(_ jsonschema.CompilerContext, schema map[string]any) (jsonschema.ExtSchema, error) {
	given, ok := schema[listTypeKeyword]
	if !ok {
		return nil, nil
	}
	keys, _ := schema[listKeysKeyword].([]any)
	if isMap := given == "map"; !isMap && given != "set" || isMap != (len(keys) > 0) {
		return nil, fmt.Errorf("%s must be set, or map with %s", listTypeKeyword, listKeysKeyword)
	}
	return &listType{given.(string), keys}, nil
}

// Validate finds nothing. The kind's own checks require unique entries.
func (*listType) Validate(jsonschema.ValidationContext, any) error { return nil }

// listTypeOf returns nil for an atomic list.
func listTypeOf(s *jsonschema.Schema) *listType {
	t, _ := s.Extensions[listTypeKeyword].(*listType)
	return t
}

// describe adds the keywords to an OpenAPI schema.
func (t *listType) describe(out map[string]any) {
	if t == nil {
		return
	}
	out[listTypeKeyword] = t.name
	if len(t.keys) > 0 {
		out[listKeysKeyword] = t.keys
	}
}
