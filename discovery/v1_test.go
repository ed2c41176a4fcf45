package discovery_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/pilot-api/pilot-api/discovery"
)

// What a v1 Envoy would refuse, its schemas refuse.
func TestV1AnswersFitTheSchemas(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{
		"cds": v1Schema(t, "cds"), "lds": v1Schema(t, "lds"), "sds": v1Schema(t, "sds"), "sds nobody": v1Schema(t, "sds"),
		"rds 80": v1Schema(t, "rds"), "rds proxy": v1Schema(t, "rds"), "rds 8123": v1Schema(t, "rds"),
	}
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1"), timeout(t, "web.example", 5)), discovery.Options{})
		for _, node := range []string{nodeA, nodeWeb} {
			all := everything(t, s, node)
			for name, schema := range schemas {
				var answer any
				if err := json.Unmarshal([]byte(all[name]), &answer); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if err := schema.Validate(answer); err != nil {
					t.Errorf("%s of %s: %v\n%s", name, node, err, all[name])
				}
			}
		}
	})
}

// v1Schema compiles Envoy's schema of one answer from the shared references.
func v1Schema(t *testing.T, answer string) *jsonschema.Schema {
	t.Helper()
	const folder = "../../shared/envoy-v1/schemas"
	files, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	if len(files) == 0 {
		if os.Getenv("CI") != "" {
			t.Fatalf("no schemas in %s", folder)
		}
		t.Skipf("SKIPPED: v1 answers are not validated, there are no schemas in %s", folder)
	}
	c := jsonschema.NewCompiler()
	const base = "https://schemas.invalid/envoy-v1/"
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(base+filepath.Base(file), bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return c.MustCompile(base + answer + "-response.json")
}
