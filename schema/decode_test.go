package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/golden"
	"github.com/pilot-api/pilot-api/internal/outside"
)

// sharedFiles lists files of the recorded data.
func sharedFiles(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(outside.Shared(t), pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		outside.Missing(t, "recorded "+pattern)
	}
	return files
}

func readFile(t testing.TB, name string) []byte {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// verdict is a list of problems without their messages, one a line.
func verdict(list diag.List) []string {
	var lines []string
	for _, p := range list {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.Severity, p.Reason, p.Field)))
	}
	return lines
}

// specCase is one spec in YAML and the problems that it has.
type specCase struct {
	name string
	spec string
	want []string
}

// meaning is a list without what is right and not followed, which has tests of
// its own.
func meaning(o *Object, list diag.List) diag.List {
	if o == nil {
		return list
	}
	limits := map[string]bool{}
	for _, p := range o.limits() {
		limits[p.Field+p.Message] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(p diag.Problem) bool { return limits[p.Field+p.Message] })
}

func testSpecs(t *testing.T, apiVersion, kind string, cases []specCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			indented := "  " + strings.ReplaceAll(strings.TrimSpace(c.spec), "\n", "\n  ")
			text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: x}\nspec:\n%s\n", apiVersion, kind, indented)
			o, list := Decode([]byte(text), Options{})
			if diff := cmp.Diff(c.want, verdict(meaning(o, list))); diff != "" {
				t.Fatalf("problems (-want +got):\n%s\n%v", diff, list)
			}
			if (o == nil) != (list.Err() != nil) {
				t.Fatalf("object %v with problems %v", o, list)
			}
			for _, p := range list {
				if p.Position == nil || p.Position.Line < 4 {
					t.Errorf("no position in the spec: %v", p)
				}
			}
			if o != nil {
				checkWritten(t, o, list)
			}
		})
	}
}

// checkWritten holds for every object: what is written is read back as it is,
// with the same warnings.
func checkWritten(t *testing.T, o *Object, list diag.List) {
	t.Helper()
	again, problems := Decode(o.JSON(), Options{})
	if again == nil {
		t.Fatalf("the written form is refused: %v", problems)
	}
	if diff := cmp.Diff(string(o.JSON()), string(again.JSON())); diff != "" {
		t.Errorf("the written form is written differently (-first +second):\n%s", diff)
	}
	var lasting diag.List
	for _, p := range list {
		if p.Field != "apiVersion" {
			lasting = append(lasting, p)
		}
	}
	if list := Validate(o); list != nil {
		t.Errorf("Validate looked at a decoded object again: %v", list)
	}
	checkOwn(t, o, lasting)
	byHand, err := o.WithMeta(o.Meta)
	if err != nil {
		t.Fatal(err)
	}
	got, want := verdict(Validate(byHand)), verdict(lasting)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Validate (-decode +validate):\n%s", diff)
	}
	for _, column := range o.Kind.Columns {
		if strings.Contains(column.Cell(o), "invalid") {
			t.Errorf("column %s: %s", column.Name, column.Cell(o))
		}
	}
}

func TestSamples(t *testing.T) {
	want := map[string][]string{
		"destination-policy-reviews.yaml": {"error FieldValueNotSupported apiVersion"},
		"httpbin-circuit-breaker.yaml":    {"warning FieldValueNotSupported apiVersion"},
		"httpbin-v1.yaml":                 {"warning FieldValueNotSupported apiVersion"},
	}
	for _, file := range sharedFiles(t, "samples/bookinfo-0.7.1/*.yaml") {
		for _, doc := range Split(readFile(t, file), filepath.Base(file)) {
			objects, list, err := doc.Objects(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[filepath.Base(file)], verdict(list)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", file, diff, list)
			}
			for _, o := range objects {
				checkWritten(t, o, list)
			}
		}
	}
}

func TestConformanceObjects(t *testing.T) {
	decoded := 0
	for _, file := range sharedFiles(t, "conformance/pilot-v1/cases/*/*.yaml") {
		text := readFile(t, file)
		if filepath.Base(file) == "case.yaml" || !strings.Contains(string(text), "config.istio.io/v1alpha2") {
			continue
		}
		o, list := Decode(text, Options{File: file})
		if list != nil {
			t.Errorf("%v", list)
		}
		if o != nil {
			decoded++
			checkWritten(t, o, list)
		}
	}
	if decoded == 0 {
		t.Error("no v1alpha2 object among the cases")
	}
}

func TestSpellings(t *testing.T) {
	const want = `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":"x","namespace":"prod",` +
		`"labels":{"snake_case":"stays"}},"spec":{"appendHeaders":{"x_y":"1"},"destination":{"labels":{},"name":"a"},` +
		`"httpFault":{"delay":{"fixedDelay":"5s","percent":0.5}},"precedence":0,"route":[{"labels":{"my_label":"v1"}}]}}`
	o, list := Decode([]byte(`
kind: RouteRule
api_version: config.istio.io/v1alpha2
metadata: {name: x, labels: {snake_case: stays}, creationTimestamp: null}
spec:
  http_fault: {delay: {fixed_delay: 5s, percent: 0.5}, abort: null}
  append_headers: {x_y: "1"}
  precedence: 0
  destination: {name: a, labels: {}}
  route: [{labels: {my_label: v1}}]
status: {anything: goes}
`), Options{Namespace: "prod"})
	if o == nil {
		t.Fatal(list)
	}
	if diff := cmp.Diff(want, string(o.JSON())); diff != "" {
		t.Error(diff)
	}
}

func TestEnvelope(t *testing.T) {
	good := "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: x}\nspec: {destination: {name: a}}\n"
	for _, c := range []struct {
		name, old, new string
		want           string
	}{
		{"good", "", "", ""},
		{"no kind", "kind: RouteRule", "", "kind: must be given"},
		{"no apiVersion", "apiVersion: config.istio.io/v1alpha2", "", "apiVersion: must be given"},
		{"unknown kind", "kind: RouteRule", "kind: ExternalService", "the kinds are DestinationPolicy, EgressRule"},
		{"kind with a slip", "kind: RouteRule", "kind: RouteRul", "did you mean RouteRule?"},
		{"kind by plural", "kind: RouteRule", "kind: route-rules", "did you mean RouteRule?"},
		{"another program's", "kind: RouteRule\nmetadata: {name: x}\nspec: {destination: {name: a}}", "kind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}",
			`kind: there is no kind "ConfigMap"; the kinds are `},
		{"version that never was", "v1alpha2", "v1beta1", "there is no config.istio.io/v1beta1; the apiVersion of RouteRule is config.istio.io/v1alpha2"},
		{"wrong group", "config.istio.io/v1alpha2", "networking.istio.io/v1", "there is no RouteRule in networking.istio.io/v1"},
		{"no spec", "spec: {destination: {name: a}}", "", "spec: must be given"},
		{"spec of a wrong type", "{destination: {name: a}}", "[1]", "spec: must be a map"},
		{"unknown field", "spec:", "sepc: {}\nspec:", "sepc: there is no such field; did you mean spec?"},
		{"no metadata", "metadata: {name: x}", "", "metadata: must be given"},
		{"no name", "name: x", "", "metadata.name: must be given"},
		{"generated name", "name: x", "generateName: x-", ""},
		{"bad name", "name: x", "name: My_Name", "metadata.name: must be up to 253 of"},
		{"number as name", "name: x", "name: 17", "metadata.name: must be a text: put it in quotes"},
		{"bad namespace", "name: x", "name: x, namespace: a.b", "metadata.namespace: must be 1 to 63"},
		{"bad label", "name: x", "name: x, labels: {a: 'b c'}", "metadata.labels.a: must be empty or up to 63"},
		{"bad label name", "name: x", "name: x, labels: {'a b': c}", "metadata.labels[a b]: the name must be a label name"},
		{"nameless label", "name: x", "name: x, labels: {'': 'b c'}", "metadata.labels[]: the name must not be empty"},
		{"unknown metadata", "name: x", "name: x, lables: {}", "metadata.lables: there is no such field; did you mean labels?"},
		{"big annotation", "name: x", "name: x, annotations: {a: " + strings.Repeat("x", 1<<18) + "}", "metadata.annotations: "},
		{"two spellings", "spec: {", "spec: {http_fault: {}, httpFault: {}, ", "spec.httpFault: is given twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, list := Decode([]byte(strings.Replace(good, c.old, c.new, 1)), Options{})
			if got := list.Error(); c.want == "" && got != "" || !strings.Contains(got, c.want) || len(list) > 1 {
				t.Errorf("want %q, got:\n%s", c.want, got)
			}
		})
	}
}

func TestAllProblemsAtOnceWithPositions(t *testing.T) {
	text := readFile(t, "testdata/many-problems.yaml")
	_, list := Decode(text, Options{File: "many.yaml"})
	golden.Page(t, "testdata/many-problems.txt", list.Error()+"\n")
}

func TestPositionsInJSON(t *testing.T) {
	text := "{\n\t\"apiVersion\": \"config.istio.io/v1alpha2\", \"kind\": \"RouteRule\",\n" +
		"\t\"metadata\": {\"name\": \"x\"},\n\t\"spec\": {\"destination\": {\"name\": \"a\"},\n\t\t\"precedence\": \"ü\", \"nosuch\": 1}\n}"
	_, list := Decode([]byte(text), Options{File: "x.json"})
	want := []string{"x.json:5:17", "x.json:5:23"}
	var got []string
	for _, p := range list {
		got = append(got, p.Position.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%v", diff, list)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	var spec strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&spec, "  nosuch%d: 1\n", i)
	}
	_, list := Decode([]byte("apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: x}\nspec:\n"+spec.String()), Options{})
	if len(list) != mostProblems+1 || list.Err() == nil {
		t.Errorf("%d problems", len(list))
	}
}

func TestValidateByHand(t *testing.T) {
	o, list := Decode([]byte("apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: x}\nspec: {destination: {name: a}}"), Options{})
	if o == nil {
		t.Fatal(list)
	}
	bad, err := New(o.Kind, o.Meta, []byte(`{"destination":{"name":"a"},"http_fault":{},"precedence":"1"}`))
	if err != nil {
		t.Fatal(err)
	}
	bad.Meta.Namespace = ""
	want := []string{
		"error FieldValueRequired metadata.namespace",
		"error FieldUnknown spec.http_fault",
		"error FieldValueTypeInvalid spec.precedence",
	}
	if diff := cmp.Diff(want, verdict(Validate(bad))); diff != "" {
		t.Error(diff)
	}
}

// Advice that leads into the next error is none.
func TestAdviceOnWrongTypes(t *testing.T) {
	for field, want := range map[string]string{
		"timeout: 5":                       "spec.http[0].timeout: must be a duration of at least 1ms",
		"rewrite: {authority: 5}":          "spec.http[0].rewrite.authority: must be a text: put it in quotes, found 5",
		"match: [{sourceNamespace: true}]": "spec.http[0].match[0].sourceNamespace: must be a text: put it in quotes, found true",
		"match: [{uri: {regex: []}}]":      "spec.http[0].match[0].uri.regex: must be a text, found",
	} {
		text := "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: x}\nspec: {hosts: [a], http: [{route: [{destination: {host: a}}], " + field + "}]}\n"
		_, list := Decode([]byte(text), Options{})
		if got := list.Error(); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
}

// TestMissingFieldsAreTold by the first sentence of what they are.
func TestMissingFieldsAreTold(t *testing.T) {
	_, list := Decode([]byte("apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: x}\nspec: {}\n"), Options{})
	const want = "spec.destination: must be given: the service that the rule is for"
	if list.Err() == nil || !strings.HasSuffix(list.Error(), want) {
		t.Errorf("want %q, got %v", want, list)
	}
}
