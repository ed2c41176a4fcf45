package schema

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// exclusiveKeyword is this project's keyword in the JSON Schemas for groups of
// fields of which at most one may be given. The standard ways to express this do
// not yield a usable error message.
const exclusiveKeyword = "exclusive"

type exclusive [][]string

type exclusiveCompiler struct{}

func (exclusiveCompiler) Compile(_ jsonschema.CompilerContext, schema map[string]any) (jsonschema.ExtSchema, error) {
	given, ok := schema[exclusiveKeyword]
	if !ok {
		return nil, nil
	}
	groups, ok := given.([]any)
	if !ok {
		return nil, fmt.Errorf("%s must be a list of lists of fields", exclusiveKeyword)
	}
	var out exclusive
	for _, group := range groups {
		fields, ok := group.([]any)
		if !ok {
			return nil, fmt.Errorf("%s must be a list of lists of fields", exclusiveKeyword)
		}
		names := make([]string, len(fields))
		for i, field := range fields {
			names[i] = fmt.Sprint(field)
		}
		out = append(out, names)
	}
	return out, nil
}

// Validate reports that there is a violation; excluded says which.
func (e exclusive) Validate(ctx jsonschema.ValidationContext, value any) error {
	v, _ := value.(map[string]any)
	for _, group := range e {
		if len(present(group, v)) > 1 {
			return ctx.Error(exclusiveKeyword, "more than one of %v", group)
		}
	}
	return nil
}

func present(names []string, v map[string]any) []string {
	var out []string
	for _, name := range names {
		if _, ok := v[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

func (p *problems) excluded(field string, s *jsonschema.Schema, v map[string]any) {
	for _, group := range exclusiveOf(s) {
		given := present(group, v)
		for i := 1; i < len(given); i++ {
			p.forbidden(keyField(field, given[i]), fmt.Sprintf("cannot be given together with %s: give at most one of %s", given[0], strings.Join(group, ", ")))
		}
	}
}

func exclusiveOf(s *jsonschema.Schema) exclusive {
	groups, _ := s.Extensions[exclusiveKeyword].(exclusive)
	return groups
}
