package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/pilot-api/pilot-api/diag"
)

// spelling brings a value, in place, to the one form that is written: names in
// lower camel case, enum values by name, no nulls (to a proto, null is the
// same as absent). It goes only where the schema knows the names, so that the
// keys of free maps such as labels stay as they are.
func (p *problems) spelling(field string, s *jsonschema.Schema, v any) any {
	s = resolve(s)
	switch v := v.(type) {
	case map[string]any:
		p.fieldNames(field, s, v)
		for name, member := range v {
			if schema, _ := below(s, v, name); schema != nil {
				v[name] = p.spelling(keyField(field, name), schema, member)
			}
		}
	case []any:
		if s.Items2020 != nil {
			for i := range v {
				v[i] = p.spelling(fmt.Sprintf("%s[%d]", field, i), s.Items2020, v[i])
			}
		}
	case int64:
		if names := enumNames(s); v >= 0 && v < int64(len(names)) {
			return names[v]
		}
	}
	return v
}

func (p *problems) fieldNames(field string, s *jsonschema.Schema, v map[string]any) {
	for _, name := range slices.Collect(maps.Keys(v)) {
		written := name
		if _, known := s.Properties[name]; !known {
			if written = lowerCamel(name); s.Properties[written] == nil {
				continue
			}
		}
		value := v[name]
		if written != name {
			delete(v, name)
			if _, both := v[written]; both {
				p.duplicate(keyField(field, written), "is given twice, as "+name+" too: these are two spellings of one field")
				continue
			}
		}
		if value == nil {
			delete(v, written)
		} else {
			v[written] = value
		}
	}
}

// ignored warns of fields that have no effect: those that the schema calls
// deprecated.
func (p *problems) ignored(field string, s *jsonschema.Schema, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			schema, _ := below(s, v, name)
			if schema == nil {
				continue
			}
			at := keyField(field, name)
			if schema.Deprecated {
				p.add(diag.Warning, diag.NotHonoured, at, "", "is accepted and has no effect: "+lowerFirst(strings.TrimSuffix(schema.Description, ".")))
			}
			p.ignored(at, schema, member)
		}
	case []any:
		if items := resolve(s).Items2020; items != nil {
			for i, member := range v {
				p.ignored(fmt.Sprintf("%s[%d]", field, i), items, member)
			}
		}
	}
}

// lowerCamel turns the proto spelling simple_cb into simpleCb.
func lowerCamel(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}
