package schema

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
)

func TestMalformed(t *testing.T) {
	deep := func(open, shut string) string { return strings.Repeat(open, 200) + strings.Repeat(shut, 200) }
	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
		"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"
	for _, c := range []struct{ name, text, position, want string }{
		{"empty", "", "", "the text is empty"},
		{"comments only", "# a\n---\n# b\n", "", "the text is empty"},
		{"two documents", "a: 1\n---\n\nb: 2\n", "3:1", "there are 2 documents"},
		{"text", "just words", "1:1", "must be a map"},
		{"list", "- a\n- b", "1:1", "must be a map"},
		{"null", "~", "1:1", "must be a map"},
		{"JSON list", "[1]", "1:1", "must be a map"},
		{"too long", "a: " + strings.Repeat("x", MaxTextBytes), "1:1", fmt.Sprint(MaxTextBytes, " are allowed")},
		{"not UTF-8", "a: \xff", "1:4", "not in UTF-8"},
		{"not UTF-8 further down", "a: ü\nb: ü\xff", "2:6", "not in UTF-8"},
		{"unclosed quote", "a: 'b\nc: d\n", "1:4", "not valid YAML"},
		{"bad indentation", "a:\n  b: 1\n c: 2\n", "3:2", "not valid YAML"},
		{"bad indentation far below", "a:\n  b:\n    c: 1\n    d: 2\n    e: 3\n   f: 4\n    g: 5\n", "6:4", "not valid YAML"},
		{"two colons", "a: b: c", "1:5", "must be in quotes"},
		{"tab", "a:\n  b: 1\n\tc: 2\n", "3:1", "a tab in the indentation"},
		{"deep YAML", "a: " + deep("[", "]"), "1:68", "nested more than 64"},
		{"deep JSON", `{"a":` + deep("[", "]") + "}", "1:1", "nested more than 64"},
		{"laughs", laughs, "1:26", "aliases repeat more than"},
		{"a long text many times", "a: &a " + strings.Repeat("x", 60_000) + "\nb: [*a, *a, *a]", "1:4", "aliases repeat more than"},
		{"a long name many times", "a: &a {" + strings.Repeat("x", 1000) + ": 1}\nb: [" + strings.Repeat("*a,", 101) + "]", "1:8", "aliases repeat more than"},
		{"alias to itself", "a: &a [*a]", "1:4", "nested more than 64"},
		{"merge key", "a: &a {b: c}\nd:\n  <<: *a\n", "3:3", "merge keys"},
		{"octal number as name", "010: a", "1:1", "the name of a field must be a text"},
		{"fraction as name", "1.0: a", "1:1", "the name of a field must be a text"},
		{"list as name", "? [a]\n: b", "1:3", "the name of a field must be a text"},
		{"name twice", "a: 1\na: 2", "2:1", "a is given twice"},
		{"yes", "a: yes", "1:4", "yes without quotes"},
		{"On", "a: On", "1:4", "On without quotes"},
		{"off as a name", "off: 1", "1:1", "off without quotes"},
		{"octal", "a: 010", "1:4", "must be written in decimal"},
		{"hexadecimal", "a: 0x10", "1:4", "must be written in decimal"},
		{"not a number", "a: .nan", "1:4", "not a number"},
		{"tag", "a: !include b", "1:4", "the tag !include"},
		{"binary", "a: !!binary aGk=", "1:4", "the tag !!binary"},
		{"tag of a map", "a: !foo {b: c}", "1:4", "the tag !foo"},
		{"tag of a list", "a: !foo [b]", "1:4", "the tag !foo"},
		{"set", "a: !!set {b: null}", "1:4", "the tag !!set"},

		{"JSON, unclosed", `{"a": 1`, "1:7", "not valid JSON"},
		{"JSON, comma missing", "{\n\"a\": 1\n\"b\": 2}", "3:1", "not valid JSON"},
		{"flow YAML, unclosed", "{a: 1,\n b: [1, 2}", "", "not valid YAML"},
		{"flow YAML, second", "{a: 1} {b: 2}", "", "not valid YAML"},
		{"flow YAML, no such kind", "{apiVersion: config.istio.io/v1alpha2,\n kind: RouteRul}", "2:8", "did you mean RouteRule"},
		{"flow YAML, name twice", "{a: 1,\n a: 2}", "2:2", "a is given twice"},
		{"flow YAML, octal", "{a: 010}", "1:5", "must be written in decimal"},
		{"flow YAML, deep", "{a: " + deep("[", "]") + "}", "", "nested more than 64"},
		{"flow YAML, values behind a quote", "{a: '\"', b: [" + strings.Repeat("1,", MaxValues) + "]}", "", fmt.Sprintf("more than %d values", MaxValues)},
		{"JSON, second object", `{"a": 1}{"b": 2}`, "1:9", "more text after the end"},
		{"JSON, name twice", "{\"a\": {\"b\": 1,\n\"b\": 2}}", "1:13", "is given twice"},
		{"JSON, number too large", `{"a": 1e999}`, "1:7", "a: the number 1e999 is too large"},
		{"JSON, number too large inside", "{\"spec\": {\"x\": [1, {\"y\": 2}],\n \"b\": [{}, {\"port\": -1e400}]}}", "2:21", "spec.b[1].port: the number -1e400 is too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, list := Decode([]byte(c.text), Options{File: "f"})
			if o != nil || list.Err() == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(list.Error(), c.want) {
				t.Errorf("want %q, got:\n%v", c.want, list)
			}
			if c.position != "" && (list[0].Position == nil || list[0].Position.String() != "f:"+c.position) {
				t.Errorf("want position %s, got:\n%v", c.position, list)
			}
		})
	}
}

// What is unusual and allowed.
func TestSyntaxAllowed(t *testing.T) {
	for name, text := range map[string]string{
		"a map in braces":   "{apiVersion: config.istio.io/v1alpha2, kind: RouteRule, metadata: {name: x}, spec: {destination: {name: a}}}",
		"braces behind ---": "---\n{apiVersion: config.istio.io/v1alpha2, kind: RouteRule, metadata: {name: x}, # why\n spec: {destination: {name: a}}}\n",
		"names in quotes":   "{'apiVersion': config.istio.io/v1alpha2, \"kind\": RouteRule, \"metadata\": {\"name\": x}, \"spec\": {\"destination\": {\"name\": a,},},}",
		"byte order mark":   "\ufeffapiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: x}\nspec: {destination: {name: a}}",
		"Windows lines":     "apiVersion: config.istio.io/v1alpha2\r\nkind: RouteRule\r\nmetadata: {name: x}\r\nspec: {destination: {name: a}}\r\n",
		"markers":           "%YAML 1.2\n--- # here\napiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: x}\nspec: {destination: {name: a}}\n...\n",
		"alias":             "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: &a a}\nspec: {destination: {name: *a}}\n",
		"whole floats":      "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: x}\nspec: {destination: {name: a}, precedence: 1e3}\n",
		"quoted yes":        "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: 'yes'}\nspec: {destination: {name: \"no\"}}\n",
		"a date as text":    "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: 2026-01-01}\nspec: {destination: {name: a}}\n",
		"JSON with tabs":    "{\t\"apiVersion\": \"config.istio.io/v1alpha2\",\n\t\"kind\": \"RouteRule\", \"metadata\": {\"name\": \"x\"}, \"spec\": {\"destination\": {\"name\": \"a\"}}}",
	} {
		t.Run(name, func(t *testing.T) {
			o, list := Decode([]byte(text), Options{})
			if list != nil {
				t.Fatal(list)
			}
			checkWritten(t, o, list)
		})
	}
}

// FuzzDecode looks for texts that are taken and not read back, and for panics.
func FuzzDecode(f *testing.F) {
	for _, file := range sharedFiles(f, "samples/bookinfo-0.7.1/*.yaml") {
		f.Add(readFile(f, file))
	}
	examples, err := filepath.Glob("../examples/bookinfo-networking/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range examples {
		f.Add(readFile(f, file))
	}
	f.Add(readFile(f, "testdata/many-problems.yaml"))
	f.Add([]byte(`{"apiVersion":"networking.istio.io/v1","kind":"WorkloadEntry","metadata":{"name":"x"},"spec":{"address":"1.2.3.4"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, doc := range Split(text, "f") {
			objects, list, err := doc.Objects(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				again, problems := Decode(o.JSON(), Options{})
				if again == nil || string(again.JSON()) != string(o.JSON()) {
					t.Fatalf("%s is read back as %v with %v", o.JSON(), again, problems)
				}
			}
			for _, p := range list {
				if p.Message == "" || p.Severity != diag.Error && p.Severity != diag.Warning {
					t.Fatalf("%#v", p)
				}
			}
		}
	})
}
