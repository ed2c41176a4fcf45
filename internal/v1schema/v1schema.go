// Package v1schema lets tests check v1 discovery bodies against Envoy's own JSON Schemas.
// The schemas are not part of this repository and may be missing.
package v1schema

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// base is the prefix of every $id. Nothing is fetched from there.
const base = "https://schemas.invalid/envoy-v1/"

// folder is the path of the schemas in the recorded data.
var folder = []string{"envoy-v1", "schemas"}

// Need skips a test that only uses Validate if there are no schemas.
func Need(t testing.TB) {
	t.Helper()
	outside.Shared(t, folder...)
}

// Validate fails the test unless Envoy accepts the whole body. name is cds-response,
// lds-response, lds-response-stock, rds-response, sds-response or bootstrap-v1. Without
// the schemas Validate checks nothing, so that the rest of the test still counts, but
// fails if CI is set.
func Validate(t testing.TB, name string, body []byte) {
	t.Helper()
	if !outside.HaveShared(t, folder...) {
		t.Logf("NOT CHECKED by the v1 schemas: %s", name)
		return
	}
	schema := compile(t, name)
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, body)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("violates %s: %#v\n%s", name, err, body)
	}
}

var (
	mu       sync.Mutex // The compiler caches what it has compiled.
	compiler *jsonschema.Compiler
)

func compile(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	dir := outside.Shared(t, folder...)
	mu.Lock()
	defer mu.Unlock()
	if compiler == nil {
		compiler = newCompiler(t, dir)
	}
	schema, err := compiler.Compile(base + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func newCompiler(t testing.TB, dir string) *jsonschema.Compiler {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(base+filepath.Base(file), bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}
