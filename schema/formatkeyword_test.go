package schema

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/pilot-api/pilot-api/diag"
)

// TestFormatsWithinLength: no format sees a text that is longer than its maxLength,
// and each sees one that is not.
func TestFormatsWithinLength(t *testing.T) {
	seen := 0
	formats["counted"] = format{"counted", func(string) bool { seen++; return true }}
	defer delete(formats, "counted")
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	compiler.RegisterExtension(formatKeyword, nil, formatCompiler{})
	if err := compiler.AddResource("a.json", strings.NewReader(`{"type": "string", "format": "counted", "maxLength": 3}`)); err != nil {
		t.Fatal(err)
	}
	s := compiler.MustCompile("a.json")
	for text, want := range map[string]int{"éàè": 1, "éàèé": 0} {
		seen = 0
		_ = s.Validate(text)
		if seen != want {
			t.Errorf("the library shows %s to the format %d times, want %d", text, seen, want)
		}
		seen = 0
		scan, _ := read(`"` + text + `"`)
		predicateOf(s).fits(scan, 0)
		scan.done()
		if seen != want {
			t.Errorf("the predicate shows %s to the format %d times, want %d", text, seen, want)
		}
	}
}

// TestExpressionsHaveALength: a regular expression costs more than its length to
// check, so each of its schemas has a maxLength.
func TestExpressionsHaveALength(t *testing.T) {
	found := 0
	var walk func(at string, s *jsonschema.Schema)
	walk = func(at string, s *jsonschema.Schema) {
		if isRegex(s.Format) {
			found++
			if s.MaxLength < 0 {
				t.Errorf("%s has no maxLength", at)
			}
		}
		if s.PropertyNames != nil && isRegex(s.PropertyNames.Format) {
			t.Errorf("%s: the names are expressions", at)
		}
		for name, property := range s.Properties {
			walk(at+"."+name, property)
		}
		if rest, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
			walk(at+".*", rest)
		}
		if s.Items2020 != nil {
			walk(at+"[]", s.Items2020)
		}
	}
	for name, s := range compiled() {
		walk(name, s)
	}
	if found < 10 {
		t.Errorf("%d expressions in the schemas: they were not found", found)
	}
}

// TestExpressionsAreCheap decodes objects with expressions that are much for a parser,
// too long or just short enough, wherever an expression may stand.
func TestExpressionsAreCheap(t *testing.T) {
	const perByte, atLeast = 1500, 2_000_000
	places := map[string]string{
		"uri":            "kind: VirtualService\nspec:\n  hosts: [a]\n  http: [{match: [{uri: {regex: %s}}], route: [{destination: {host: a}}]}]\n",
		"withoutHeaders": "kind: VirtualService\nspec:\n  hosts: [a]\n  http: [{match: [{withoutHeaders: {a: {regex: %s}}}], route: [{destination: {host: a}}]}]\n",
		"rewrite":        "kind: VirtualService\nspec:\n  hosts: [a]\n  http: [{rewrite: {uriRegexRewrite: {match: %s, rewrite: b}}, route: [{destination: {host: a}}]}]\n",
		"origin":         "kind: VirtualService\nspec:\n  hosts: [a]\n  http: [{corsPolicy: {allowOrigins: [{regex: %s}]}, route: [{destination: {host: a}}]}]\n",
		"rule":           "kind: RouteRule\nspec: {destination: {name: a}, match: {request: {headers: {uri: {regex: %s}}}}}\n",
	}
	for at, form := range places {
		version := "apiVersion: networking.istio.io/v1\n"
		if at == "rule" {
			version = "apiVersion: config.istio.io/v1alpha2\n"
		}
		for _, part := range []string{`\pL`, `[\pL]`, `(?i)[\PL]`, "(?i)[B-\U0001e942]", `\pL{990}|`} {
			for _, length := range []int{40, 1024, 15_000, 50_000} {
				expr := strings.Repeat(part, max(1, length/len(part)))
				text := []byte(version + "metadata: {name: a}\n" + fmt.Sprintf(form, "'"+expr+"'"))
				var problems diag.List
				got := allocated(func() { _, problems = Decode(text, Options{}) })
				if bound := uint64(perByte*len(text) + atLeast); got > bound {
					t.Errorf("%s, %d of %s: %d bytes are allocated, want at most %d: %.200v", at, length, part, got, bound, problems)
				}
			}
		}
	}
}

// allocated is how many bytes a call allocates.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
