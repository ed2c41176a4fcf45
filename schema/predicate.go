package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// predicate decides whether a value fits a JSON Schema, without a reason:
// docs/decisions/023-fast-validation.md. Its answer is the same as the library's.
type predicate struct {
	types     []byte  // as in node.what; i for integers; nil for any
	enum      *choice // nil for any
	format    func(string) bool
	least     *big.Rat
	most      *big.Rat
	minLength int // -1 for none, as in the library
	maxLength int

	items              *predicate
	minItems, maxItems int

	properties    map[string]*predicate
	rest          *predicate // for other members, nil for no condition
	closed        bool       // other members are not allowed
	names         func(string) bool
	required      []string
	exclusive     exclusive
	maxProperties int

	// deprecated values fit, and lead to a warning.
	deprecated bool
}

// predicates are the predicates of the compiled schemas, under the same names. A
// schema that a predicate cannot express is left out.
var predicates = sync.OnceValue(func() map[string]*predicate {
	out := map[string]*predicate{}
	for name, s := range compiled() {
		if v := predicateOf(s); v != nil {
			out[name] = v
		}
	}
	return out
})

// followedFields are the fields of the library's schemas that a predicate
// implements or that do not restrict values. A schema that uses any other field has
// no predicate.
var followedFields = []string{
	"Location", "Draft", "Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated",
	"Types", "Enum", "Format", "Minimum", "Maximum", "MinLength", "MaxLength",
	"Items2020", "MinItems", "MaxItems",
	"Properties", "AdditionalProperties", "PropertyNames", "Required", "MaxProperties", "Extensions",
	"MinContains", "ContainsEval", // The library sets them itself. They mean nothing without Contains.
}

// saysNothing is an empty schema to compare with.
var saysNothing = sync.OnceValue(func() reflect.Value {
	return reflect.ValueOf(*jsonschema.MustCompileString("nothing.json", "{}"))
})

// predicateOf returns nil for a schema that a predicate cannot express.
func predicateOf(s *jsonschema.Schema) *predicate {
	if !isFollowed(s) {
		return nil
	}
	v := &predicate{
		least: s.Minimum, most: s.Maximum, minLength: s.MinLength, maxLength: s.MaxLength,
		minItems: s.MinItems, maxItems: s.MaxItems, maxProperties: s.MaxProperties,
		required: s.Required, exclusive: exclusiveOf(s), deprecated: s.Deprecated,
	}
	if s.Format != "" {
		v.format = formats[s.Format].ok
	}
	known := v.setTypes(s.Types) && v.setEnum(s.Enum) && v.setNames(s.PropertyNames) && v.setRest(s.AdditionalProperties)
	if s.Items2020 != nil {
		v.items = predicateOf(s.Items2020)
		known = known && v.items != nil
	}
	if len(s.Properties) > 0 {
		v.properties = make(map[string]*predicate, len(s.Properties))
	}
	for name, property := range s.Properties {
		v.properties[name] = predicateOf(property)
		known = known && v.properties[name] != nil
	}
	if !known {
		return nil
	}
	return v
}

func isFollowed(s *jsonschema.Schema) bool {
	given := reflect.ValueOf(*s)
	for i := range given.NumField() {
		field := given.Type().Field(i)
		if !field.IsExported() || slices.Contains(followedFields, field.Name) {
			continue
		}
		if !reflect.DeepEqual(given.Field(i).Interface(), saysNothing().Field(i).Interface()) {
			return false
		}
	}
	_, known := formats[s.Format]
	return s.Format == "" || known
}

func (v *predicate) setTypes(names []string) bool {
	for _, name := range names {
		what, ok := map[string]byte{"object": '{', "array": '[', "string": '"', "boolean": 't', "null": 'n', "number": 0, "integer": 'i'}[name]
		if !ok {
			return false
		}
		v.types = append(v.types, what)
	}
	return true
}

// choice is an enum of texts and whole numbers.
type choice struct {
	texts   []string
	numbers []int64
}

func (v *predicate) setEnum(values []any) bool {
	if len(values) == 0 {
		return true
	}
	v.enum = &choice{}
	for _, value := range values {
		switch value := value.(type) {
		case string:
			v.enum.texts = append(v.enum.texts, value)
		case json.Number:
			i, err := value.Int64()
			if err != nil {
				return false
			}
			v.enum.numbers = append(v.enum.numbers, i)
		default:
			return false
		}
	}
	return true
}

// setNames supports only a format of names.
func (v *predicate) setNames(s *jsonschema.Schema) bool {
	if s == nil {
		return true
	}
	names := predicateOf(s)
	if names == nil || names.types != nil || names.enum != nil || names.minLength >= 0 || names.maxLength >= 0 {
		return false
	}
	v.names = names.format
	return true
}

func (v *predicate) setRest(additional any) bool {
	switch additional := additional.(type) {
	case nil:
	case bool:
		v.closed = !additional
	case *jsonschema.Schema:
		v.rest = predicateOf(additional)
		return v.rest != nil
	}
	return true
}

// fits returns false also if there is no predicate.
func fits(name string, value any) bool {
	p := predicates()[name]
	text, err := json.Marshal(value)
	if p == nil || err != nil {
		return false
	}
	s, ok := read(string(text))
	defer s.done()
	if ok {
		ok, _ = p.fits(s, 0)
	}
	return ok
}

// fits reports whether a value of a scan fits the schema. plain reports that it
// also is in the written form and needs no warning: no null and no deprecated field
// where the schema knows the name, no number for a name.
func (v *predicate) fits(s *scan, i int32) (fits, plain bool) {
	n := &s.nodes[i]
	if !v.isType(s, n) {
		return false, false
	}
	plain = true
	if v.enum != nil {
		if !v.enum.has(s, i) {
			return false, false
		}
		plain = n.what == '"'
	}
	switch n.what {
	case '{':
		return v.fitsMap(s, i)
	case '[':
		return v.fitsList(s, i)
	case '"':
		return v.fitsText(s, i), plain
	case 0:
		return v.inRange(s, n), plain
	}
	return true, plain
}

func (v *predicate) isType(s *scan, n *node) bool {
	if v.types == nil {
		return true
	}
	what := n.what
	if what == 'f' {
		what = 't'
	}
	return slices.Contains(v.types, what) ||
		what == 0 && slices.Contains(v.types, 'i') && isInteger(s, n)
}

func isInteger(s *scan, n *node) bool {
	if n.plain {
		return true
	}
	number, _ := numberOf(s.text[n.start:n.end])
	return number.integer || number.f == math.Trunc(number.f)
}

func (c *choice) has(s *scan, i int32) bool {
	n := &s.nodes[i]
	switch n.what {
	case '"':
		text, _ := s.of(i)
		return slices.Contains(c.texts, text)
	case 0:
		number, _ := numberOf(s.text[n.start:n.end])
		return slices.ContainsFunc(c.numbers, number.equals)
	}
	return false
}

func (n number64) equals(i int64) bool {
	if n.integer {
		return n.i == i
	}
	return n.f == float64(i)
}

func (v *predicate) fitsText(s *scan, i int32) bool {
	if v.format == nil && v.minLength < 0 && v.maxLength < 0 {
		return true
	}
	text, _ := s.of(i)
	if v.minLength > 0 || v.maxLength >= 0 {
		length := utf8.RuneCountInString(text)
		if length < v.minLength || v.maxLength >= 0 && length > v.maxLength {
			return false
		}
	}
	return v.format == nil || v.format(text)
}

func (v *predicate) inRange(s *scan, n *node) bool {
	if v.least == nil && v.most == nil {
		return true
	}
	number, _ := numberOf(s.text[n.start:n.end])
	return (v.least == nil || number.compare(v.least) >= 0) && (v.most == nil || number.compare(v.most) <= 0)
}

func (n number64) compare(bound *big.Rat) int {
	if n.integer {
		if num := bound.Num(); bound.IsInt() && num.IsInt64() {
			switch b := num.Int64(); {
			case n.i < b:
				return -1
			case n.i > b:
				return 1
			}
			return 0
		}
		return new(big.Rat).SetInt64(n.i).Cmp(bound)
	}
	// The library compares decimals, which differ from a float64 by less than its
	// neighbours do.
	switch near, _ := bound.Float64(); {
	case n.f < math.Nextafter(near, math.Inf(-1)):
		return -1
	case n.f > math.Nextafter(near, math.Inf(1)):
		return 1
	}
	decimal, _ := new(big.Rat).SetString(fmt.Sprint(n.f))
	return decimal.Cmp(bound)
}

func (v *predicate) fitsList(s *scan, i int32) (fits, plain bool) {
	n := &s.nodes[i]
	count := int(n.members)
	if count < v.minItems || v.maxItems >= 0 && count > v.maxItems {
		return false, false
	}
	plain = true
	if v.items == nil {
		return true, plain
	}
	for m := i + 1; m < n.after; m = s.nodes[m].after {
		fits, as := v.items.fits(s, m)
		if !fits {
			return false, false
		}
		plain = plain && as && !v.items.deprecated
	}
	return true, plain
}

func (v *predicate) fitsMap(s *scan, i int32) (fits, plain bool) {
	n := &s.nodes[i]
	if v.maxProperties >= 0 && int(n.members) > v.maxProperties {
		return false, false
	}
	plain = true
	for m := i + 1; m < n.after; m = s.nodes[m].after {
		if s.nodes[m].what == dropped {
			continue
		}
		name := s.name(m)
		if v.names != nil && !v.names(name) {
			return false, false
		}
		plain = plain && name != ""
		member, known := v.properties[name]
		if !known {
			if member = v.rest; member == nil {
				if v.closed {
					return false, false
				}
				continue
			}
		}
		fits, as := member.fits(s, m)
		if !fits {
			return false, false
		}
		plain = plain && as && !member.deprecated && (s.nodes[m].what != 'n' || !known)
	}
	return v.hasRequired(s, i) && v.keepsApart(s, i), plain
}

func (v *predicate) hasRequired(s *scan, i int32) bool {
	for _, name := range v.required {
		if s.member(i, name) == 0 {
			return false
		}
	}
	return true
}

func (v *predicate) keepsApart(s *scan, i int32) bool {
	for _, group := range v.exclusive {
		given := 0
		for _, name := range group {
			if s.member(i, name) != 0 {
				given++
			}
		}
		if given > 1 {
			return false
		}
	}
	return true
}
