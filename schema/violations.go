package schema

import (
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/pilot-api/pilot-api/diag"
)

// structure checks a value, found at field, against the schema of a name. It calls
// the library only to learn what is wrong, not whether something is.
func (p *problems) structure(field, name string, value any) {
	if fits(name, value) {
		return
	}
	s := compiled()[name]
	err := s.Validate(value)
	if err == nil {
		return
	}
	root, ok := err.(*jsonschema.ValidationError)
	if !ok {
		p.invalid(field, "cannot be checked: "+err.Error())
		return
	}
	p.explain(root, func(leaf *jsonschema.ValidationError) { p.leaf(field, s, value, leaf) })
}

// explain visits the innermost errors. The outer ones only repeat the path.
func (p *problems) explain(e *jsonschema.ValidationError, leaf func(*jsonschema.ValidationError)) {
	if len(e.Causes) == 0 {
		leaf(e)
	}
	for _, cause := range e.Causes {
		if p.full(diag.Error) {
			return
		}
		p.explain(cause, leaf)
	}
}

// leaf reports one violated keyword in our own words.
func (p *problems) leaf(field string, s *jsonschema.Schema, v any, e *jsonschema.ValidationError) {
	steps := pointer(e.InstanceLocation)
	ofName := strings.Contains(e.KeywordLocation, "/propertyNames/")
	for i, step := range steps {
		field = keyField(field, step)
		if ofName && i == len(steps)-1 {
			p.invalid(field, "the name "+violated(s.PropertyNames.Format, step))
			return
		}
		s, v = below(s, v, step)
	}
	p.violation(field, path.Base(e.KeywordLocation), s, v)
}

func (p *problems) violation(field, keyword string, s *jsonschema.Schema, v any) {
	switch keyword {
	case "additionalProperties":
		p.unknownFields(field, s, v.(map[string]any))
	case "required":
		p.missingFields(field, s, v.(map[string]any))
	case exclusiveKeyword:
		p.excluded(field, s, v.(map[string]any))
	case "type":
		p.add(diag.Error, diag.FieldTypeInvalid, field, short(v), wrongType(s, v))
	case "enum":
		p.notSupportedValue(field, v, "must be one of "+strings.Join(enumNames(s), ", "))
	case "format":
		p.invalidValue(field, v, violated(s.Format, v.(string)))
	default:
		p.bound(field, keyword, s, v)
	}
}

// pointer splits the library's location of a value into steps.
func pointer(location string) []string {
	if location == "" {
		return nil
	}
	steps := strings.Split(strings.TrimPrefix(location, "/"), "/")
	for i, step := range steps {
		steps[i] = unescape(step)
	}
	return steps
}

// unescape reverses the library's escaping of a name in a location.
func unescape(step string) string {
	if plain, err := url.PathUnescape(step); err == nil {
		step = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
}

func (p *problems) unknownFields(field string, s *jsonschema.Schema, v map[string]any) {
	known := slices.Sorted(maps.Keys(s.Properties))
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if p.full(diag.Error) {
			return
		}
		if _, ok := s.Properties[name]; !ok {
			p.add(diag.Error, diag.FieldUnknown, keyField(field, name), "", "there is no such field; "+Suggest(name, known, "the fields here are"))
		}
	}
}

func (p *problems) missingFields(field string, s *jsonschema.Schema, v map[string]any) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			what, _, _ := strings.Cut(s.Properties[name].Description, ". ") // The first sentence says what it is.
			p.required(keyField(field, name), "must be given: "+lowerFirst(strings.TrimSuffix(what, ".")))
		}
	}
}

// lowerFirst prepares a sentence for a place after a colon. An abbreviation stays
// as it is.
func lowerFirst(text string) string {
	if len(text) < 2 || unicode.IsUpper(rune(text[1])) {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}

func (p *problems) bound(field, keyword string, s *jsonschema.Schema, v any) {
	reason, message := diag.FieldInvalid, "must be "+bounds(s)
	switch keyword {
	case "minLength":
		message = "must not be empty"
	case "maxLength":
		reason, message = diag.FieldTooLong, fmt.Sprintf("must have at most %d characters", s.MaxLength)
	case "minItems":
		message = fmt.Sprintf("must have at least %d %s; leave the field out when there is none", s.MinItems, plural(s.MinItems, "entry", "entries"))
	case "maxItems":
		reason, message = diag.FieldTooLong, fmt.Sprintf("must have at most %d entries", s.MaxItems)
	case "maxProperties":
		reason, message = diag.FieldTooLong, fmt.Sprintf("must have at most %d entries", s.MaxProperties)
	}
	p.add(diag.Error, reason, field, short(v), message)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// bounds describes the range of a number, "" for none.
func bounds(s *jsonschema.Schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return "from " + number(s.Minimum) + " to " + number(s.Maximum)
	case s.Minimum != nil:
		return "at least " + number(s.Minimum)
	case s.Maximum != nil:
		return "at most " + number(s.Maximum)
	}
	return ""
}

func number(r *big.Rat) string { return strings.TrimSuffix(r.RatString(), "/1") }

// typeName describes the type, with its article.
func typeName(s *jsonschema.Schema) string {
	if names := enumNames(s); len(names) > 0 {
		return "one of " + strings.Join(names, ", ")
	}
	switch s.Types[0] {
	case "string":
		return "a text"
	case "integer":
		return strings.TrimSpace("a whole number " + bounds(s))
	case "number":
		return strings.TrimSpace("a number " + bounds(s))
	case "boolean":
		return "true or false"
	case "array":
		return "a list"
	}
	if len(s.Properties) == 0 {
		return "a map"
	}
	return "a map with the fields " + strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")
}

// wrongType says what is required in place of a value. It suggests no quotes if the
// quoted text would be rejected as well.
func wrongType(s *jsonschema.Schema, v any) string {
	if text, ok := scalar(v); ok && s.Types[0] == "string" && s.Format != "" && !formats[s.Format].ok(text) {
		return violated(s.Format, text)
	}
	return "must be " + typeName(s) + quoteHint(s, v)
}

// scalar returns the text of a value that is not null, a map or a list.
func scalar(v any) (string, bool) {
	switch v.(type) {
	case nil, map[string]any, []any:
		return "", false
	}
	return fmt.Sprint(v), true
}

// quoteHint returns a hint if only quotes are missing or superfluous.
func quoteHint(s *jsonschema.Schema, v any) string {
	text, isText := v.(string)
	_, notNumber := strconv.ParseFloat(text, 64)
	_, isScalar := scalar(v)
	switch want := s.Types[0]; {
	case want == "string" && isScalar:
		return ": put it in quotes"
	case isText && (want == "integer" || want == "number") && notNumber == nil,
		isText && want == "boolean" && (text == "true" || text == "false"):
		return ", without quotes"
	}
	return ""
}

// enumNames returns the texts of an enum. The numbers after them are an older form
// of the same values.
func enumNames(s *jsonschema.Schema) []string {
	var names []string
	for _, v := range s.Enum {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names
}
