package compile_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestEveryKindCounts: an object of a kind that can be stored must change what
// proxies do, or be reported. So each kind has an archive in which it does.
func TestEveryKindCounts(t *testing.T) {
	outside.Slow(t)
	files, err := filepath.Glob("../testdata/translate/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	registry, err := os.ReadFile("../testdata/translate/registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]bool{}
	for _, file := range files {
		w := readWorld(t, file, string(registry))
		for _, kind := range schema.Kinds() {
			counts[kind.Kind] = counts[kind.Kind] || w.needs(kind)
		}
	}
	for _, kind := range schema.Kinds() {
		if !counts[kind.Kind] && !kind.Flat {
			t.Errorf("no archive in testdata/translate shows that a %s has an effect: compile it, or report it without effect", kind.Kind)
		}
	}
}

// world is what an archive compiles.
type world struct {
	settings *mesh.Settings
	objects  []*schema.Object
	proxy    mesh.Proxy
}

func readWorld(t *testing.T, file, registry string) world {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, part := range archive.Files {
		parts[part.Name] = string(part.Data)
	}
	settings, problems := mesh.ParseSettings([]byte(parts["mesh.yaml"]), file)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return world{
		settings: settings,
		objects:  objects(t, registry+"\n---\n"+parts["objects.yaml"]),
		proxy:    proxy(t, strings.TrimSpace(parts["proxy"])),
	}
}

// needs reports whether the result is another one without objects of the kind.
func (w world) needs(kind *schema.Kind) bool {
	others := slices.DeleteFunc(slices.Clone(w.objects), func(o *schema.Object) bool { return o.Kind == kind })
	config, problems := w.compile(w.objects)
	without, fewer := w.compile(others)
	return !reflect.DeepEqual(config, without) || problems.Error() != fewer.Error()
}

func (w world) compile(objs []*schema.Object) (*ir.Config, diag.List) {
	snapshot := mesh.NewSnapshot(1, w.settings, objs)
	config, problems := compile.Proxy(snapshot, snapshot.TraitsOf(w.proxy))
	return config, append(problems, snapshot.Problems...)
}
