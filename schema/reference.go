package schema

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Reference returns the field reference of a kind as a Markdown page, derived from
// the JSON Schema that validates it.
func Reference(k *Kind) string {
	var page strings.Builder
	fmt.Fprintf(&page, "# %s\n\n%s\n\n", k.Kind, k.Doc)
	typed := slices.Compact(append([]string{k.Singular, k.Dashed}, k.ShortNames...))
	also := ""
	if len(k.Served) > 0 {
		also = " (also `" + strings.Join(k.Served, "`, `") + "`)"
	}
	fmt.Fprintf(&page, "`apiVersion: %s`%s, `kind: %s`. On the command line: `%s`. In URLs: `%s`.\n\n",
		k.APIVersion(), also, k.Kind, strings.Join(typed, "`, `"), k.Plural)
	var selectable []string
	for _, f := range SelectableFields(k) {
		selectable = append(selectable, f.Name)
	}
	fmt.Fprintf(&page, "A `fieldSelector` may name: `%s`.\n\n", strings.Join(selectable, "`, `"))
	page.WriteString("## spec\n\n| Field | Type | Required | Default | Constraint | Effect | Meaning |\n|---|---|---|---|---|---|---|\n")
	referenceRows(&page, effects()[k.Kind], "", compiled()[k.Singular])
	page.WriteString("\nThe column *Meaning* also has rules that the table cannot show, such as fields that exclude each other. " +
		"The column *Effect* names the Envoy APIs over which the field changes the configuration of a proxy. Over the other APIs, and with *none*, it changes nothing. *problem* means that no proxy can do it, and that a warning or a Problem says what happens instead. *refused* means that such an object is not stored. Tests that set the field in examples found these effects. " +
		"Each field may also be written in the proto spelling (`simple_cb` for `simpleCb`); it is stored as above.\n")
	if k.Notes != "" {
		page.WriteString("\n" + k.Notes + "\n")
	}
	return page.String()
}

// referenceRows writes the members of a map or list, required ones first.
func referenceRows(page *strings.Builder, effects map[string]string, field string, s *jsonschema.Schema) {
	if s.Items2020 != nil {
		referenceRows(page, effects, field+"[]", s.Items2020)
		return
	}
	if rest, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		referenceRows(page, effects, field+".<name>", rest)
		return
	}
	for _, name := range propertyOrder(s) {
		at, property := strings.TrimPrefix(field+"."+name, "."), s.Properties[name]
		required := ""
		if slices.Contains(s.Required, name) {
			required = "yes"
		}
		fmt.Fprintf(page, "| `%s` | %s | %s | %s | %s | %s | %s |\n", at, referenceType(property), required,
			defaultText(property), cellText(constraint(property)), effects[at], cellText(property.Description))
		referenceRows(page, effects, at, property)
	}
}

func propertyOrder(s *jsonschema.Schema) []string {
	return slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		return cmp.Or(rank(s, a)-rank(s, b), strings.Compare(a, b))
	})
}

func rank(s *jsonschema.Schema, name string) int {
	if at := slices.Index(s.Required, name); at >= 0 {
		return at
	}
	return len(s.Required)
}

func referenceType(s *jsonschema.Schema) string {
	rest, isMap := s.AdditionalProperties.(*jsonschema.Schema)
	switch {
	case s.Items2020 != nil:
		return "list of " + referenceType(s.Items2020)
	case isMap:
		return "map to " + referenceType(rest)
	case strings.HasPrefix(s.Format, "duration"):
		return "duration"
	case s.Enum != nil:
		return "enum"
	}
	return s.Types[0]
}

func defaultText(s *jsonschema.Schema) string {
	if s.Default == nil {
		return ""
	}
	return cellText(fmt.Sprint(s.Default))
}

// constraint says what a value must be, as in the messages of validation.
func constraint(s *jsonschema.Schema) string {
	rest, _ := s.AdditionalProperties.(*jsonschema.Schema)
	switch names := enumNames(s); {
	case len(names) > 0:
		return strings.Join(names, ", ")
	case s.Items2020 != nil:
		return strings.TrimPrefix(itemBounds(s)+each("entries", s.Items2020), "; ")
	case rest != nil:
		return strings.TrimPrefix(each("names", s.PropertyNames)+each("values", rest), "; ")
	case s.Format != "" && s.MinLength > 0:
		return "not empty; " + formats[s.Format].want
	case s.Format != "":
		return formats[s.Format].want
	case s.MaxLength > 0:
		return fmt.Sprintf("at most %d characters", s.MaxLength)
	}
	return bounds(s)
}

func itemBounds(s *jsonschema.Schema) string {
	var text string
	if s.MinItems > 0 {
		text += fmt.Sprintf("; at least %d", s.MinItems)
	}
	if s.MaxItems >= 0 {
		text += fmt.Sprintf("; at most %d", s.MaxItems)
	}
	return text
}

func each(what string, s *jsonschema.Schema) string {
	if s == nil || constraint(s) == "" {
		return ""
	}
	return "; " + what + ": " + constraint(s)
}

func cellText(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "*", "\\*").Replace(text)
}

//go:embed effects.json
var effectsText []byte

// effects maps a kind and field to the Envoy APIs over which the field takes
// effect: "v3, v1", "v3" or "none"; "problem" if no proxy supports it and the
// object has a problem; "refused" if validation rejects it. They are found by
// trying (compile.TestEffects).
var effects = sync.OnceValue(func() map[string]map[string]string {
	var out map[string]map[string]string
	if err := json.Unmarshal(effectsText, &out); err != nil {
		panic(err)
	}
	return out
})
