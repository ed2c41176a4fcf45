package schema

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

var update = flag.Bool("update", false, "write the generated files instead of comparing them")

func TestReferenceIsCurrent(t *testing.T) {
	for _, k := range Kinds() {
		file := filepath.Join("..", "docs", "reference", k.Singular+".md")
		want := Reference(k)
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what the schema says; run go test ./schema -run Reference -update\n%s", file, diff)
		}
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
