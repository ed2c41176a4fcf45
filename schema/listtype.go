package schema

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Keywords of Kubernetes in the JSON Schemas, for lists that several may write
// at: a set, or a map whose entries are known by a field each. All other lists are
// atomic: who applies one applies all of it.
const (
	listTypeKeyword = "x-kubernetes-list-type"
	listKeysKeyword = "x-kubernetes-list-map-keys"
)

// listType is what they say of one list.
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

// Validate finds nothing: that entries are unique is for the kind's own checks.
func (*listType) Validate(jsonschema.ValidationContext, any) error { return nil }

// listTypeOf is nil for what is atomic.
func listTypeOf(s *jsonschema.Schema) *listType {
	t, _ := s.Extensions[listTypeKeyword].(*listType)
	return t
}

// describe puts the keywords into a schema of OpenAPI.
func (t *listType) describe(out map[string]any) {
	if t == nil {
		return
	}
	out[listTypeKeyword] = t.name
	if len(t.keys) > 0 {
		out[listKeysKeyword] = t.keys
	}
}
