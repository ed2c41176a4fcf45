package schema

import (
	"embed"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

//go:embed jsonschema/*.json
var schemaFiles embed.FS

const schemaBase = "https://github.com/pilot-api/pilot-api/schema/jsonschema/"

// compiled has the JSON Schemas by file name without ".json": one for each kind, by
// its Singular, "object" for the parts common to all kinds, and "definitions". They
// are part of the program, so it panics if one does not compile.
var compiled = sync.OnceValue(func() map[string]*jsonschema.Schema {
	compiler := jsonschema.NewCompiler()
	compiler.Draft, compiler.ExtractAnnotations = jsonschema.Draft2020, true
	compiler.RegisterExtension(formatKeyword, nil, formatCompiler{})
	compiler.RegisterExtension(exclusiveKeyword, nil, exclusiveCompiler{})
	compiler.RegisterExtension(listTypeKeyword, nil, listTypeCompiler{})
	files, err := schemaFiles.ReadDir("jsonschema")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		text, err := schemaFiles.Open("jsonschema/" + file.Name())
		if err != nil {
			panic(err)
		}
		if err := compiler.AddResource(schemaBase+file.Name(), text); err != nil {
			panic(err)
		}
	}
	out := map[string]*jsonschema.Schema{}
	for _, file := range files {
		out[strings.TrimSuffix(file.Name(), ".json")] = inline(compiler.MustCompile(schemaBase + file.Name()))
	}
	return out
})

// inline replaces a $ref by its target, so that neither the library nor this
// package follows it for every object. In our schemas only annotations stand beside
// a $ref, and there are no cycles.
func inline(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Ref != nil {
		whole := *inline(s.Ref)
		whole.Description, whole.Default = s.Description, s.Default
		whole.Deprecated = whole.Deprecated || s.Deprecated
		return &whole
	}
	for name, property := range s.Properties {
		s.Properties[name] = inline(property)
	}
	if rest, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		s.AdditionalProperties = inline(rest)
	}
	if s.Items2020 != nil {
		s.Items2020 = inline(s.Items2020)
	}
	return s
}

// below returns the schema of one member of a map or list, nil for an unknown
// member, and the member.
func below(s *jsonschema.Schema, v any, step string) (*jsonschema.Schema, any) {
	switch v := v.(type) {
	case map[string]any:
		if s == nil {
			return nil, v[step]
		}
		if property, ok := s.Properties[step]; ok {
			return property, v[step]
		}
		rest, _ := s.AdditionalProperties.(*jsonschema.Schema)
		return rest, v[step]
	case []any:
		i, err := strconv.Atoi(step)
		switch {
		case err != nil || i < 0 || i >= len(v):
			return nil, nil
		case s == nil:
			return nil, v[i]
		}
		return s.Items2020, v[i]
	}
	return nil, nil
}
