package compile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/pilot-api/pilot-api/internal/golden"
	"github.com/pilot-api/pilot-api/internal/scenario"
	"github.com/pilot-api/pilot-api/schema"
)

const fieldsIntroduction = `# Fields and their tests

This page lists each field of each kind, whether Envoys of the v3 and the v1 API follow it, and the tests that prove it. The page is generated (` + "`make docs`" + `). A test fails for a field that no other test sets.

* *v3* and *v1*: **yes** means that the field changes the configuration of such an Envoy. *problem* means that the object gets a problem, which says what happens instead. *refused* means that an object with the field cannot be stored. *nothing* means that the field is only a name, or states the default.
* *Translated*: an archive of [testdata/translate](../../testdata/translate), which has the object and the resulting configuration for both APIs. A real Envoy accepts that configuration.
* *Seen*: tests in which requests through a real Envoy show the effect of the field: archives of [testdata/live](../../testdata/live), Go tests and, if there are none, [tasks](../tasks.md) that set the field.

The fields of ` + "`trafficPolicy`" + ` are those of every policy of a DestinationRule: of a port, of a subset, and of a port of a subset.
`

// tested are the tests of fields, each by what it sets.
type tested struct {
	name  string
	specs scenario.Specs
}

// TestFieldsPage checks the page that says for each field which Envoys follow it, and
// which tests prove it.
func TestFieldsPage(t *testing.T) {
	effects, translated, seen, tasks := readEffects(t), translations(t), observations(t), tasks(t)
	var page strings.Builder
	page.WriteString(fieldsIntroduction)
	for _, kind := range schema.Kinds() {
		if kind.Flat {
			continue // It concerns no proxy.
		}
		fmt.Fprintf(&page, "\n## %s\n\n| Field | v3 | v1 | Translated | Seen |\n|---|---|---|---|---|\n", kind.Kind)
		effects := effects[kind.Kind]
		for _, row := range referenceRow.FindAllStringSubmatch(schema.Reference(kind), -1) {
			field := scenario.Field{Kind: kind.Kind, Path: row[1]}
			effect, ok := effects[field.Path]
			if !ok || atHome(field) != field {
				continue // Its fields say it, or the row of the same policy.
			}
			by, live := setBy(translated, everywhere(field)), slices.Sorted(slices.Values(seen[field]))
			if len(live) == 0 {
				live = slices.DeleteFunc([]string{setBy(tasks, everywhere(field))}, func(name string) bool { return name == "" })
			}
			if by == "" && len(live) == 0 && effect != "refused" && effect != "problem" {
				t.Errorf("%s: %s takes effect (%s), and no archive sets it", kind.Kind, field.Path, effect)
			}
			v3, v1 := followed(effect)
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", field.Path, v3, v1, by, strings.Join(live, ", "))
		}
	}
	golden.Page(t, "../docs/reference/fields.md", page.String())
}

func followed(effect string) (v3, v1 string) {
	switch effect {
	case "v3, v1":
		return "yes", "yes"
	case "v3":
		return "yes", "problem"
	case "v1":
		return "problem", "yes"
	case "none":
		return "nothing", "nothing"
	}
	return effect, effect
}

// A policy of a DestinationRule has the same fields in four places, and one row
// for each.
var policyPlaces = []string{
	"trafficPolicy.", "trafficPolicy.portLevelSettings[].", "subsets[].trafficPolicy.", "subsets[].trafficPolicy.portLevelSettings[].",
}

// atHome is the field of the policy of the whole rule.
func atHome(f scenario.Field) scenario.Field {
	for _, place := range slices.Backward(policyPlaces) {
		if rest, ok := strings.CutPrefix(f.Path, place); ok && f.Kind == "DestinationRule" && !strings.HasPrefix(rest, "port") {
			f.Path = policyPlaces[0] + rest
			return f
		}
	}
	return f
}

func everywhere(f scenario.Field) []scenario.Field {
	rest, ok := strings.CutPrefix(f.Path, policyPlaces[0])
	if !ok || f.Kind != "DestinationRule" {
		return []scenario.Field{f}
	}
	var out []scenario.Field
	for _, place := range policyPlaces {
		out = append(out, scenario.Field{Kind: f.Kind, Path: place + rest})
	}
	return out
}

func readEffects(t *testing.T) map[string]map[string]string {
	text, err := os.ReadFile(effectsFile)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]map[string]string
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// translations are the archives of testdata/translate.
func translations(t *testing.T) []tested {
	files, err := filepath.Glob("../testdata/translate/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	var out []tested
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "objects.yaml" })
		if i < 0 {
			continue // It is about the registry alone.
		}
		out = append(out, tested{strings.TrimSuffix(filepath.Base(file), ".txtar"), readSpecs(t, string(archive.Files[i].Data))})
	}
	return out
}

func readSpecs(t *testing.T, objects string) scenario.Specs {
	specs, err := scenario.ReadSpecs(objects)
	if err != nil {
		t.Fatal(err)
	}
	return specs
}

// setBy is the first that sets the field; of those that are about
// problems none, if there is another.
func setBy(all []tested, places []scenario.Field) string {
	found := ""
	for _, one := range all {
		switch {
		case !slices.ContainsFunc(places, one.specs.Set):
		case !strings.Contains(one.name, "problem"):
			return one.name
		case found == "":
			found = one.name
		}
	}
	return found
}

// observations are the tests in which requests show what a field does.
func observations(t *testing.T) map[scenario.Field][]string {
	out := map[scenario.Field][]string{}
	note := func(by string, fields ...scenario.Field) {
		for _, f := range fields {
			if f = atHome(f); !slices.Contains(out[f], by) {
				out[f] = append(out[f], by)
			}
		}
	}
	scenarios, err := scenario.ReadAll("../testdata/live")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios {
		for _, step := range s.Steps {
			note(s.Name, step.Observes...)
		}
	}
	for test, fields := range observers(t) {
		note(test, fields...)
	}
	return out
}

var (
	observer = regexp.MustCompile(`(?m)^((?://.*\n)+)func (Test\w+)\(`)
	observes = regexp.MustCompile(`(?m)^// Observes (\w+) (.+)$`)
)

// observers are tests by what the lines "Observes KIND FIELD…" of their comments
// say.
func observers(t *testing.T) map[string][]scenario.Field {
	out := map[string][]scenario.Field{}
	for _, dir := range []string{"../internal/traffic", "../internal/e2e"} {
		files, err := filepath.Glob(dir + "/*_test.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", dir, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, test := range observer.FindAllStringSubmatch(string(text), -1) {
				for _, line := range observes.FindAllStringSubmatch(test[1], -1) {
					for _, path := range strings.Fields(line[2]) {
						out[test[2]] = append(out[test[2]], scenario.Field{Kind: line[1], Path: path})
					}
				}
			}
		}
	}
	return out
}

// tasks are the examples whose promises the end-to-end test holds, each a folder.
func tasks(t *testing.T) []tested {
	files, err := filepath.Glob("../examples/tasks/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tasks: %v", err)
	}
	var out []tested
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tested{"task " + filepath.Base(filepath.Dir(file)), readSpecs(t, string(text))})
	}
	return out
}
