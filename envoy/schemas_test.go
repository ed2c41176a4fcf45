package envoy_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

const schemaBase = "https://schemas.invalid/envoy-v1/"

// schemaSet validates v1 bodies; without the shared schemas it does nothing.
type schemaSet struct{ compiler *jsonschema.Compiler }

var loadSchemas = sync.OnceValues(func() (*schemaSet, error) {
	files, err := filepath.Glob("../../shared/envoy-v1/schemas/*.json")
	if err != nil || len(files) == 0 {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if err := c.AddResource(schemaBase+filepath.Base(f), bytes.NewReader(text)); err != nil {
			return nil, err
		}
	}
	return &schemaSet{c}, nil
})

func v1Schemas(t *testing.T) *schemaSet {
	t.Helper()
	s, err := loadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		missing(t, "the v1 schemas in ../shared/envoy-v1/schemas")
	}
	return s
}

func (s *schemaSet) validate(t *testing.T, name string, text []byte) {
	t.Helper()
	schema, err := s.compiler.Compile(schemaBase + name)
	if err != nil {
		t.Fatal(err)
	}
	var body any
	if err := json.Unmarshal(text, &body); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(body); err != nil {
		t.Errorf("violates %s: %#v\n%s", name, err, text)
	}
}
