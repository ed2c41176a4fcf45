package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// TestListsAreBounded: what is made of an object costs the product of some of
// its lists, as hosts times routes.
func TestListsAreBounded(t *testing.T) {
	var walk func(at string, s *jsonschema.Schema)
	walk = func(at string, s *jsonschema.Schema) {
		if s.Items2020 != nil {
			if s.MaxItems < 0 {
				t.Errorf("%s has no maxItems", at)
			}
			walk(at+"[]", s.Items2020)
		}
		for name, property := range s.Properties {
			walk(at+"."+name, property)
		}
		if rest, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
			walk(at+".*", rest)
		}
	}
	for name, s := range compiled() {
		walk(name, s)
	}
}

// TestChecksAreNotQuadratic gives the checks of each kind an object whose every
// list and map has few entries, and then eight times as many, beyond what a
// schema allows, and counts allocations: eight times as many and some for maps
// that grow, where a loop in a loop makes sixty-four times as many. A loop in a
// loop that only compares is not seen; the bounds of the lists are for that.
func TestChecksAreNotQuadratic(t *testing.T) {
	const few, times = 250, 8
	for _, kind := range Kinds() {
		t.Run(kind.Kind, func(t *testing.T) {
			allocs := func(entries int) float64 {
				text, err := json.Marshal(generator{n: entries}.value(compiled()[kind.Singular], 0))
				if err != nil {
					t.Fatal(err)
				}
				spec, err := kind.spec.decode(text)
				if err != nil {
					t.Fatal(err)
				}
				return testing.AllocsPerRun(2, func() { kind.check(spec) })
			}
			if less, more := allocs(few), allocs(few*times); more > 2*times*less {
				t.Errorf("%v allocations for lists of %d, %v for lists of %d", less, few, more, few*times)
			}
		})
	}
}

// generator makes values that fit a schema but for its bounds. Lists and maps
// have n different entries, of which only the first one has lists and maps of
// its own.
type generator struct{ n int }

// name returns the name of the entry j of a map.
func (generator) name(of *jsonschema.Schema, j int) string {
	if of.PropertyNames != nil && of.PropertyNames.Format == "port-number" {
		return fmt.Sprint(j + 1)
	}
	return fmt.Sprintf("a%d.b", j)
}

func (g generator) value(s *jsonschema.Schema, i int) any {
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	switch s.Types[0] {
	case "array":
		n := g.n
		if i > 0 {
			n = 1
		}
		list := make([]any, n)
		for j := range list {
			list[j] = g.value(s.Items2020, i+j)
		}
		return list
	case "object":
		out := map[string]any{}
		if rest, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
			for j := range g.n {
				out[g.name(s, j)] = g.value(rest, i+j)
			}
		}
		excluded := map[string]bool{}
		for _, group := range exclusiveOf(s) {
			for _, name := range group[1:] {
				excluded[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			property := s.Properties[name]
			nested := property.Types[0] == "array" || property.Types[0] == "object"
			if excluded[name] || property.Deprecated || nested && i > 0 && !slices.Contains(s.Required, name) {
				continue
			}
			out[name] = g.value(property, i)
		}
		return out
	case "integer", "number":
		if s.Minimum != nil {
			least, _ := s.Minimum.Float64()
			return int(least) + i%100
		}
		return i % 100
	case "boolean":
		return true
	}
	switch s.Format {
	case "duration", "duration-ms", "duration-s":
		return "1s"
	case "base64":
		return "YQ=="
	case "re2":
		return "a"
	}
	return fmt.Sprintf("a%d.b", i)
}
