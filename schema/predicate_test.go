package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// TestKeywordsAreFollowed: a schema with a keyword that predicates do not know is
// left to the library, which is slow; none of ours shall be.
func TestKeywordsAreFollowed(t *testing.T) {
	known := map[string]bool{}
	for _, keyword := range []string{
		"$schema", "$id", "$ref", "$defs", "description", "default", "deprecated",
		"type", "enum", "format", "minimum", "maximum", "minLength", "maxLength", "items", "minItems", "maxItems",
		"properties", "additionalProperties", "propertyNames", "required", "maxProperties", exclusiveKeyword,
		listTypeKeyword, listKeysKeyword,
	} {
		known[keyword] = true
	}
	var walk func(at string, s any)
	walk = func(at string, s any) {
		schema, _ := s.(map[string]any)
		for keyword, value := range schema {
			if !known[keyword] {
				t.Errorf("%s: predicates do not know the keyword %s", at, keyword)
			}
			switch keyword {
			case "properties", "$defs":
				for name, inner := range value.(map[string]any) {
					walk(at+"/"+keyword+"/"+name, inner)
				}
			case "items", "additionalProperties", "propertyNames":
				walk(at+"/"+keyword, value)
			}
		}
	}
	files, err := schemaFiles.ReadDir("jsonschema")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := schemaFiles.ReadFile("jsonschema/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		var s any
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		walk(file.Name(), s)
		if predicates()[strings.TrimSuffix(file.Name(), ".json")] == nil {
			t.Errorf("%s has no predicate", file.Name())
		}
	}
}

// What a predicate does not know makes it none, wherever it stands.
func TestUnknownKeywords(t *testing.T) {
	for _, s := range []string{
		`{"not": {}}`, `{"const": 1}`, `{"pattern": "a"}`, `{"oneOf": [{}]}`, `{"multipleOf": 2}`, `{"exclusiveMinimum": 2}`,
		`{"minProperties": 1}`, `{"uniqueItems": true}`, `{"contains": {}}`, `{"dependentRequired": {"a": ["b"]}}`, `{"if": {}}`,
		`{"patternProperties": {"a": {}}}`, `{"prefixItems": [{}]}`, `{"$ref": "#/$defs/a", "$defs": {"a": {}}}`,
		`{"items": {"not": {}}}`, `{"properties": {"a": {"not": {}}}}`, `{"additionalProperties": {"not": {}}}`,
		`{"propertyNames": {"maxLength": 3}}`, `{"enum": [null]}`, `{"enum": [1.5]}`,
		`{"format": "uri"}`, `{"unevaluatedProperties": false}`, `false`,
	} {
		if predicateOf(jsonschema.MustCompileString("a.json", s)) != nil {
			t.Errorf("%s has a predicate", s)
		}
	}
}

// TestPredicateIsTheLibrary: both say the same of good and of bad values of each
// kind, drawn from its schema.
func TestPredicateIsTheLibrary(t *testing.T) {
	const total, often = 1500, 200
	for name, s := range compiled() {
		if name == "definitions" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			verdicts := map[bool]int{}
			for seed := range uint64(total) {
				d := drawing{r: rand.New(rand.NewPCG(seed, 1)), wrong: []int{0, 3, 12}[seed%3]}
				d.value(s, 0)
				if taken, fits := sameVerdict(t, name, d.text.Bytes()); taken {
					verdicts[fits]++
				}
			}
			often := often
			if slices.Contains([]string{"secret", "role", "clusterrole", "serviceaccount"}, name) {
				often /= 2 // They have few fields, in which any text will do.
			}
			if verdicts[true] < often || verdicts[false] < often {
				t.Errorf("of %d values %d fit and %d do not, want %d of each", total, verdicts[true], verdicts[false], often)
			}
		})
	}
}

// sameVerdict holds both ways of reading, and of holding a value against a
// schema, against each other.
func sameVerdict(t *testing.T, name string, text []byte) (taken, fits bool) {
	t.Helper()
	tree, list := Document{Text: text}.parseJSON()
	scan, taken := read(string(text))
	defer scan.done()
	if taken != (utf8.Valid(text) && loneSurrogate(string(text)) < 0 && list.Err() == nil) {
		t.Fatalf("%s: the scan takes it: %v, the parser says %v", text, taken, list)
	}
	if !taken {
		return false, false
	}
	written, err := json.Marshal(tree.value)
	if err != nil {
		t.Fatal(err)
	}
	if got := scan.appendWritten(nil, 0); !bytes.Equal(got, written) {
		t.Fatalf("%s\nis written as %s\nwant          %s", text, got, written)
	}
	fits, _ = predicates()[name].fits(scan, 0)
	if err := compiled()[name].Validate(tree.value); fits != (err == nil) {
		t.Fatalf("%s: %s fits: %v, the library says %#v", name, text, fits, err)
	}
	return true, fits
}

// TestSamplesOfFormats: the drawings need good and bad texts of each format.
func TestSamplesOfFormats(t *testing.T) {
	for name, f := range formats {
		good, bad := 0, 0
		for _, text := range samples[name] {
			if f.ok(text) {
				good++
			} else {
				bad++
			}
		}
		if good == 0 || bad == 0 {
			t.Errorf("%s: %d good and %d bad samples", name, good, bad)
		}
	}
}

// samples are texts for each format, the first of them good.
var samples = map[string][]string{
	"dns-label":        {"reviews", "a-1", "A", "", "a.b", strings.Repeat("a", 64)},
	"fqdn":             {"a.example.com", "a", "A.b", "", "*.a", "é.b"},
	"wildcard-host":    {"*.example.com", "*", "a.B", "**", ""},
	"host-or-range":    {"a.example.com", "192.0.2.0/24", "*.a", "192.0.2.0/33", "a_b"},
	"ipv4-subnet":      {"192.0.2.0/24", "192.0.2.1", "::1", "a"},
	"ip-subnet":        {"2001:db8::/32", "192.0.2.1", "192.0.2.1/99"},
	"host-or-address":  {"192.0.2.1", "a.b", "A", "::g"},
	"virtual-host":     {"a.b", "*", "::1", "a b"},
	"gateway-name":     {"ns/gw", "mesh", "a.b.c", "a/b/c", "a/"},
	"gateway-host":     {"ns/*.a.b", "*", "./a.b", "outbound_.80_._.a.b", "a", "x/y/z"},
	"bind":             {"192.0.2.1", "unix:///a", "a"},
	"egress-host":      {"./*", "*/*.a.b", "a", "~/A.b", "/a"},
	"ip":               {"192.0.2.1", "::1", "192.0.2"},
	"base64":           {"YQ==", "", "YQ", "é"},
	"workload-address": {"192.0.2.1", "unix:///a", "A.b", "a b"},
	"config-label":     {"v1", "a/b.c_D", "", "a b", "<"},
	"header-name":      {"x-user", "cookie", "X", "", "a b", ":path"},
	"header-token":     {"X-User", "a&b", "", "a b", "a\n"},
	"header-condition": {":path", "X-User", "@request.auth.claims.sub", ":a", ""},
	"header-operation": {":authority", "X", ":path"},
	"header-value":     {"a b", "", "a\nb", "é<>&\"\\\u2028", "\x00"},
	"re2-or-any":       {"*", "a.*", "(", `^\d+\.(a|b)$`},
	"re2":              {"a.*", `^(.*?;)?(user=jason)(;.*)?$`, "(", `\d\/\u00e9`, "(?!a)"},
	"duration":         {"1.5s", "0s", "250ms", "1", "-1s", "10000000h"},
	"duration-ms":      {"250ms", "1m", "1us", "0s"},
	"duration-s":       {"5m", "1s", "1.5s", "0s"},
	"server-name":      {"a.b", "", strings.Repeat("a", 256), "\x00"},
	"date-time":        {"2006-01-02T15:04:05Z", "2006-01-02T15:04:05.5+01:00", "2006-01-02", ""},
	"subset-name":      {"v1", "A-b", "-a", "", strings.Repeat("a", 64)},
	"port-name":        {"http", "a-B", "-", strings.Repeat("a", 63)},
	"export-to":        {".", "*", "~", "ns", "a.b", ""},
	"port-number":      {"1", "65535", "0", "65536", "01", "+1", "a", ""},
	"label-key":        {"app", "a.b/c", "", "a/b/c", "a b"},
	"label-value":      {"v1", "", "-", "é"},
	"annotation-key":   {"App", "a.b/C", "", "a/b/c"},
	"object-name":      {"a.b-c", "A", "", strings.Repeat("a", 254)},
	"name-prefix":      {"a-", "", "A", strings.Repeat("a", 249)},
}

// drawing writes a JSON text that fits a schema, but for something wrong in about
// so many of a hundred places.
type drawing struct {
	r     *rand.Rand
	wrong int
	text  bytes.Buffer
}

func (d *drawing) one(of int) bool { return d.r.IntN(of) == 0 }

// amiss decides whether a place goes wrong.
func (d *drawing) amiss() bool { return d.r.IntN(100) < d.wrong }

func pick[T any](d *drawing, from ...T) T { return from[d.r.IntN(len(from))] }

func (d *drawing) space() {
	if d.one(10) {
		d.text.WriteString(pick(d, " ", "\n", "\t\r\n  "))
	}
}

func (d *drawing) value(s *jsonschema.Schema, depth int) {
	d.space()
	defer d.space()
	if s == nil || d.amiss() {
		d.text.WriteString(pick(d, oddValues...))
		return
	}
	if len(s.Enum) > 0 {
		fmt.Fprint(&d.text, d.choice(s))
		return
	}
	what := "object"
	if len(s.Types) > 0 {
		what = pick(d, s.Types...)
	}
	switch what {
	case "object":
		d.object(s, depth)
	case "array":
		d.list(s, depth)
	case "boolean":
		d.text.WriteString(pick(d, "true", "false"))
	case "integer", "number":
		d.number(s, what)
	default:
		d.quote(d.sample(s))
	}
}

// oddValues are wrong nearly everywhere, or stretch what JSON allows.
var oddValues = []string{
	"null", "true", "-1", "0", "-0", "-0.0", "1.0", "0.5", "1e2", "1E-2", "9223372036854775807", "9223372036854775808", "18446744073709551616",
	"1e308", "1e400", "1e-400", "01", "1.", ".5", "+1", "-", "1e", "\"\"", "\"a\"", "\"1\"", `"\u0061"`, `"\ud800"`, `"\ud83d\ude00"`, `"\x"`, `"\u12g4"`, "\"\t\"", "\"a",
	"[]", "[1]", "{}", `{"a":1}`, `{"":1}`, `{"a":1,"a":2}`, `{"b":1,"a":2,"\u0062":3}`, "{,}", "[1,]", "nul", "", "\"\xff\"", "\"\u2028\"",
	strings.Repeat("[", 70) + strings.Repeat("]", 70), strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40),
}

func (d *drawing) choice(s *jsonschema.Schema) any {
	v := pick(d, s.Enum...)
	if text, ok := v.(string); ok {
		if d.amiss() {
			text = strings.ToLower(text)
		}
		quoted, _ := json.Marshal(text)
		return string(quoted)
	}
	return v
}

func (d *drawing) sample(s *jsonschema.Schema) string {
	texts := samples[s.Format]
	if texts == nil {
		texts = []string{"a", "", "é€𝄞", "a.b/c", `"\<>&`, strings.Repeat("ä", 300)}
	}
	if d.amiss() {
		return pick(d, texts...)
	}
	for _, text := range texts {
		if length := len([]rune(text)); length >= s.MinLength && (s.MaxLength < 0 || length <= s.MaxLength) {
			return text
		}
	}
	return texts[0]
}

// quote writes a text in one of the ways that JSON has.
func (d *drawing) quote(text string) {
	if d.one(20) {
		d.text.WriteByte('"')
		for _, c := range text {
			if c < 0x10000 {
				fmt.Fprintf(&d.text, `\u%04x`, c)
			}
		}
		d.text.WriteByte('"')
		return
	}
	quoted, _ := json.Marshal(text)
	if d.one(2) {
		quoted = bytes.ReplaceAll(quoted, []byte(`\u003c`), []byte("<"))
		quoted = bytes.ReplaceAll(quoted, []byte(`\u2028`), []byte("\u2028"))
	}
	d.text.Write(quoted)
}

func (d *drawing) number(s *jsonschema.Schema, what string) {
	least, most := int64(0), int64(1000)
	if s.Minimum != nil {
		least = s.Minimum.Num().Int64()
		most = least + 1000
	}
	if s.Maximum != nil {
		most = s.Maximum.Num().Int64()
	}
	n := pick(d, least, most, least+d.r.Int64N(min(most-least, 1<<40)+1))
	if d.amiss() {
		n = pick(d, least-1, most+1)
	}
	form := "%d"
	switch {
	case d.amiss():
		form = pick(d, "%d.5", "%d.0000000000000001", "%d.9999999999999999999", "%de1")
	case d.one(8):
		form = pick(d, "%d.0", "%de0", "%d.000E+0")
	case what == "number" && d.one(3) && n > least && n < most:
		form = pick(d, "%d.25", "%d.1", "%d.30000000000000004")
	}
	fmt.Fprintf(&d.text, form, n)
}

func (d *drawing) list(s *jsonschema.Schema, depth int) {
	n := max(s.MinItems, 0) + d.r.IntN(3)
	if depth > 6 {
		n = max(s.MinItems, 0)
	}
	if d.amiss() {
		n = pick(d, 0, 0, 3, max(s.MaxItems, 0)+1)
	}
	d.text.WriteByte('[')
	for i := range n {
		if i > 0 {
			d.text.WriteByte(',')
		}
		if i > 4 {
			d.text.WriteString("0") // It is the number of them that is wrong.
			continue
		}
		d.value(s.Items2020, depth+1)
	}
	d.text.WriteByte(']')
}

func (d *drawing) object(s *jsonschema.Schema, depth int) {
	names := d.members(s, depth)
	d.text.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			d.text.WriteByte(',')
		}
		d.space()
		d.quote(name)
		d.space()
		d.text.WriteByte(':')
		property := s.Properties[name]
		if rest, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && property == nil {
			property = rest
		}
		d.value(property, depth+1)
	}
	d.text.WriteByte('}')
}

// members are the names of those that a map gets.
func (d *drawing) members(s *jsonschema.Schema, depth int) []string {
	var names []string
	excluded := map[string]bool{}
	for _, group := range exclusiveOf(s) {
		if d.amiss() {
			continue
		}
		kept := pick(d, group...)
		for _, name := range group {
			excluded[name] = excluded[name] || name != kept
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		required := slices.Contains(s.Required, name)
		if required && !d.amiss() || !required && !excluded[name] && d.one(2+depth) {
			names = append(names, name)
		}
	}
	if rest, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && rest != nil {
		format := ""
		if s.PropertyNames != nil {
			format = s.PropertyNames.Format
		}
		for range d.r.IntN(3) {
			names = append(names, d.sample(&jsonschema.Schema{Format: format, MaxLength: -1}))
		}
	}
	if d.amiss() {
		names = append(names, pick(d, "x", "", "simple_cb", "a<b", "é", "name"))
	}
	if !d.amiss() {
		slices.Sort(names)
		names = slices.Compact(names)
	}
	if d.one(3) {
		d.r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	}
	return names
}
