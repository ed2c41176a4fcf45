package schema

import (
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/pilot-api/pilot-api/internal/golden"
)

func TestReferenceIsCurrent(t *testing.T) {
	for _, k := range Kinds() {
		golden.Page(t, filepath.Join("..", "docs", "reference", k.Singular+".md"), Reference(k))
	}
}

// Without a description a field has an empty cell in the reference, and a
// missing one a message that explains nothing.
func TestEveryPropertyIsDescribed(t *testing.T) {
	for name, s := range compiled() {
		if name == "definitions" {
			continue
		}
		undescribed(t, name, s)
	}
}

func undescribed(t *testing.T, field string, s *jsonschema.Schema) {
	if s.Items2020 != nil {
		undescribed(t, field+"[]", s.Items2020)
	}
	if rest, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		undescribed(t, field+".<name>", rest)
	}
	for name, property := range s.Properties {
		if property.Description == "" {
			t.Errorf("%s.%s has no description", field, name)
		}
		undescribed(t, field+"."+name, property)
	}
}
