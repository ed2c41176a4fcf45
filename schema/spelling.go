package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/pilot-api/pilot-api/diag"
)

// normalizer walks a value beside its schema. It warns of fields without effect,
// which the schema calls deprecated. With rewrite it also brings the value, in
// place, to the written form: names in lower camel case, enum values by name, no
// nulls (to a proto, null is the same as absent).
//
// It rejects a list that is too long, and cuts it to the allowed length: the
// library would make an error of each of a million entries.
//
// It rejects and removes a member without a name: the error locations of JSON
// Schema cannot point at it.
//
// It follows only names that the schema knows, so that the keys of free maps such
// as labels stay as they are.
type normalizer struct {
	*problems
	rewrite bool
	keep    bool // lists that are too long are not cut
	path    []string
}

func (sp *normalizer) value(s *jsonschema.Schema, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, nameless := v[""]; nameless {
			sp.invalid(keyField(sp.field(), ""), "the name must not be empty")
			delete(v, "")
		}
		if sp.rewrite {
			sp.fieldNames(s, v)
		}
		for name, member := range v {
			if schema, _ := below(s, v, name); schema != nil {
				v[name] = sp.member(name, schema, member)
			}
		}
	case []any:
		if s.MaxItems >= 0 && len(v) > s.MaxItems {
			sp.bound(sp.field(), "maxItems", s, v)
			if !sp.keep {
				clear(v[s.MaxItems:])
				v = v[:s.MaxItems]
			}
		}
		if s.Items2020 != nil {
			for i := range v {
				v[i] = sp.member(strconv.Itoa(i), s.Items2020, v[i])
			}
		}
		return v
	case int64:
		if names := enumNames(s); sp.rewrite && v >= 0 && v < int64(len(names)) {
			return names[v]
		}
	}
	return v
}

func (sp *normalizer) member(step string, s *jsonschema.Schema, v any) any {
	sp.path = append(sp.path, step)
	defer func() { sp.path = sp.path[:len(sp.path)-1] }()
	if s.Deprecated {
		sp.warn(sp.field(), "is accepted and has no effect: "+lowerFirst(strings.TrimSuffix(s.Description, ".")))
	}
	return sp.value(s, v)
}

// field returns the current path. It is called only to report a problem.
func (sp *normalizer) field() string {
	field := ""
	for _, step := range sp.path {
		field = keyField(field, step)
	}
	return field
}

func (sp *normalizer) fieldNames(s *jsonschema.Schema, v map[string]any) {
	for _, name := range slices.Collect(maps.Keys(v)) {
		written := name
		if s.Properties[name] == nil {
			if written = lowerCamel(name); s.Properties[written] == nil {
				continue
			}
		}
		value := v[name]
		if written != name {
			delete(v, name)
			if _, both := v[written]; both {
				sp.add(diag.Error, diag.FieldDuplicate, keyField(sp.field(), written), "",
					"is given twice, as "+name+" too: these are two spellings of one field")
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

// lowerCamel converts a proto name such as simple_cb to simpleCb.
func lowerCamel(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}
