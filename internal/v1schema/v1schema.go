// Package v1schema lets tests check v1 discovery bodies by Envoy's own JSON
// Schemas, which are not part of this repository: they are read from
// ../shared/envoy-v1/schemas beside it.
package v1schema

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// base is what every $id starts with; nothing is fetched from there.
const base = "https://schemas.invalid/envoy-v1/"

// Validate fails the test unless the whole body is one that Envoy takes: name
// is cds-response, lds-response, rds-response, sds-response or bootstrap-v1.
// Without the schemas the test is skipped, and fails where CI is set.
func Validate(t testing.TB, name string, body []byte) {
	t.Helper()
	schema := compile(t, name)
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, body)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("violates %s: %#v\n%s", name, err, body)
	}
}

var mu sync.Mutex // Guards the compiler.

var compiler = sync.OnceValues(func() (*jsonschema.Compiler, error) {
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return nil, err
	}
	root := filepath.Dir(strings.TrimSpace(string(module)))
	files, err := filepath.Glob(filepath.Join(root, "..", "shared", "envoy-v1", "schemas", "*.json"))
	if err != nil || len(files) == 0 {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := c.AddResource(base+filepath.Base(file), bytes.NewReader(text)); err != nil {
			return nil, err
		}
	}
	return c, nil
})

// compile is one schema at a time: the compiler keeps what it has compiled.
func compile(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	c, err := compiler()
	switch {
	case err != nil:
		t.Fatal(err)
	case c == nil && os.Getenv("CI") != "":
		t.Fatal("not found: ../shared/envoy-v1/schemas")
	case c == nil:
		t.Skip("NOT TESTED, not found: ../shared/envoy-v1/schemas")
	}
	schema, err := c.Compile(base + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
