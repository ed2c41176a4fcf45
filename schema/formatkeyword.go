package schema

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// formatKeyword is "format" of JSON Schema. This package checks it itself: the
// library checks the format even of a text that is longer than its maxLength, and a
// format may be expensive for each character.
const formatKeyword = "format"

// formatWithin is a format with the maxLength of the same schema; -1 for none.
type formatWithin struct {
	ok   func(string) bool
	most int
}

type formatCompiler struct{}

// Compile ignores formats of others; isFollowed reports them.
func (formatCompiler) Compile(_ jsonschema.CompilerContext, schema map[string]any) (jsonschema.ExtSchema, error) {
	name, _ := schema[formatKeyword].(string)
	f, ours := formats[name]
	if !ours {
		return nil, nil
	}
	out := formatWithin{f.ok, -1}
	if most, given := schema["maxLength"].(json.Number); given {
		n, err := most.Int64()
		if err != nil {
			return nil, err
		}
		out.most = int(n)
	}
	return out, nil
}

// Validate accepts a text that is too long, which maxLength reports.
func (f formatWithin) Validate(ctx jsonschema.ValidationContext, value any) error {
	text, isText := value.(string)
	if !isText || f.most >= 0 && utf8.RuneCountInString(text) > f.most || f.ok(text) {
		return nil
	}
	return ctx.Error(formatKeyword, "of another format")
}
