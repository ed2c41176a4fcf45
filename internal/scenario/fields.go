package scenario

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Specs are the specs of objects, by kind.
type Specs map[string][]any

var place = regexp.MustCompile(`\$\{(\w+)\}`)

// Filled returns a text with its placeholders ${name} replaced.
func Filled(text string, with func(name string) string) string {
	return place.ReplaceAllStringFunc(text, func(found string) string { return with(place.FindStringSubmatch(found)[1]) })
}

// ReadSpecs reads objects from a YAML stream, which may contain placeholders.
func ReadSpecs(objects string) (Specs, error) {
	out := Specs{}
	objects = Filled(objects, func(string) string { return "1" })
	for _, text := range strings.Split("\n"+objects, "\n---") {
		var object struct {
			Kind string
			Spec any
		}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			return nil, fmt.Errorf("%w: %s", err, text)
		}
		out[object.Kind] = append(out[object.Kind], object.Spec)
	}
	return out, nil
}

// Set reports whether the field is set in any object.
func (s Specs) Set(f Field) bool {
	way := strings.Split(strings.ReplaceAll(f.Path, "[]", ".[]"), ".")
	for _, spec := range s[f.Kind] {
		if set(spec, way) {
			return true
		}
	}
	return false
}

func set(value any, way []string) bool {
	if len(way) == 0 {
		return true
	}
	switch value := value.(type) {
	case []any:
		for _, entry := range value {
			if way[0] == "[]" && set(entry, way[1:]) {
				return true
			}
		}
	case map[string]any:
		for name, member := range value {
			if (way[0] == name || way[0] == "<name>") && set(member, way[1:]) {
				return true
			}
		}
	}
	return false
}
