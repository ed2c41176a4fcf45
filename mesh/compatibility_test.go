package mesh_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/mesh"
)

// switchRow is a row of the page's table.
var switchRow = regexp.MustCompile("(?m)^\\| `([A-Za-z0-9]+)` \\|")

func TestEverySwitchIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/v1-compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range switchRow.FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, row[1])
	}
	slices.Sort(documented)
	if d := cmp.Diff(switchNames(t), documented); d != "" {
		t.Errorf("docs/v1-compatibility.md and mesh.V1Compatibility differ (-code +page):\n%s", d)
	}
}

// switchNames are those that ParseSettings takes, as its own message lists
// them.
func switchNames(t *testing.T) []string {
	_, problems := mesh.ParseSettings([]byte("v1Compatibility: {none: true}"), "m")
	_, list, ok := strings.Cut(problems.Error(), "there are ")
	if !ok {
		t.Fatalf("no names in %q", problems.Error())
	}
	return slices.DeleteFunc(strings.Split(list, ", "), func(name string) bool { return name == "all" })
}

func TestEachSwitchTurnsOneThingOff(t *testing.T) {
	seen := map[mesh.V1Compatibility]string{mesh.AsPilot(): "all on"}
	for _, name := range switchNames(t) {
		settings, problems := mesh.ParseSettings([]byte("v1Compatibility: {all: true, "+name+": false}"), "m")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if other, ok := seen[settings.V1Compatibility]; ok {
			t.Errorf("%s does the same as %s", name, other)
		}
		seen[settings.V1Compatibility] = name
	}
}
