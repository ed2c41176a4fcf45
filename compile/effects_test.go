package compile_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/internal/golden"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

const effectsFile = "../schema/effects.json"

// TestEffects finds by trying what each field of each kind does to a proxy: it
// sets the field in examples, and looks whether what Envoys are told changes.
// The reference pages say so beside each field. Run with -update after a change,
// then make docs.
func TestEffects(t *testing.T) {
	outside.Slow(t)
	got := map[string]map[string]string{}
	for _, kind := range schema.Kinds() {
		if kind.Flat {
			continue // It concerns no proxy.
		}
		got[kind.Kind] = effectsOf(t, kind)
	}
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Page(t, effectsFile, string(text)+"\n")
}

var referenceRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|[^|]*\\|[^|]*\\| ((?:[^|\\\\]|\\\\.)*) \\|")

// effectsOf is, by field, where it takes effect.
func effectsOf(t *testing.T, kind *schema.Kind) map[string]string {
	var examples []example
	for _, text := range strings.Split(effectExamples[kind.Kind], "\n---\n") {
		var spec map[string]any
		if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatalf("%s: %v\n%s", kind.Kind, err, text)
		}
		e := example{kind, spec, told(t, kind, spec)}
		if e.told.v3 == "" {
			t.Errorf("%s: the example is not valid: %v\n%s", kind.Kind, schema.Validate(specObject(t, kind, spec)).Err(), text)
		}
		examples = append(examples, e)
	}
	out := map[string]string{}
	for _, row := range referenceRow.FindAllStringSubmatch(schema.Reference(kind), -1) {
		field, fieldType := row[1], strings.TrimSpace(row[2])
		if fieldType == "object" || strings.HasSuffix(fieldType, " object") {
			continue // Its fields say it.
		}
		if known, ok := effectsBeyond[kind.Kind][field]; ok {
			out[field] = known
			continue
		}
		out[field] = effect(t, examples, field, candidates(fieldType, row[3]))
	}
	return out
}

// example is a spec with what proxies are told of it.
type example struct {
	kind *schema.Kind
	spec map[string]any
	told answers
}

// answers are what Envoys of both kinds get, and the fields that could not be
// honoured, one a line; or else why the object is refused.
type answers struct {
	v3, v1, problems string
	refused          diag.List
}

// refuses reports whether the field itself is why the object is refused, or the
// whole that it is part of, and not that something is missing beside it.
func (a answers) refuses(field string) bool {
	itself := false
	for _, p := range a.refused {
		switch {
		case p.Severity != diag.Error:
		case p.Reason == diag.FieldNotSupported && strings.HasPrefix(field, p.Field):
			return true
		case !strings.HasPrefix(p.Field, field):
			return false
		default:
			itself = true
		}
	}
	return itself
}

// complains reports whether there is a problem of a field, or one more than
// without it.
func (a answers) complains(before answers, field string) bool {
	for line := range strings.Lines(a.problems) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, field) || line != "spec" && line != "" && strings.HasPrefix(field, line) {
			return true
		}
	}
	return strings.Count(a.problems, "\n") > strings.Count(before.problems, "\n")
}

func effect(t *testing.T, examples []example, field string, values []any) string {
	const enough = 3 // Examples in which no value at all is honoured.
	tried, itself, problem, inV3, inV1, hopeless := false, false, false, false, false, 0
	at := "spec." + strings.NewReplacer("[]", "[0]", "<name>", "x").Replace(field)
	for _, e := range examples {
		complaints, clean := 0, 0
		for _, v := range values {
			if inV3 && inV1 {
				return "v3, v1"
			}
			changed := told(t, e.kind, with(e.spec, path(field), v))
			if changed.v3 == "" { // It cannot be given together with what is there, or not at all.
				itself = itself || changed.refuses(at)
				continue
			}
			tried = tried || v != 0 && v != false // That is what is not set.
			if changed.complains(e.told, at) {
				complaints++
				continue
			}
			clean++
			inV3 = inV3 || changed.v3 != e.told.v3
			inV1 = inV1 || changed.v1 != e.told.v1
		}
		problem = problem || complaints > 0
		if complaints > 0 && clean == 0 {
			hopeless++
		}
		if hopeless == enough {
			break
		}
	}
	switch {
	case inV3 && inV1:
		return "v3, v1"
	case inV3:
		return "v3"
	case inV1:
		return "v1"
	case !tried:
		if !itself {
			t.Errorf("%s of %s: no example has what it needs beside it, so nothing is known of its effect", field, examples[0].kind.Kind)
		}
		return "refused"
	case problem:
		return "problem"
	}
	return "none"
}

// candidates are values that are worth trying.
func candidates(fieldType, constraint string) []any {
	switch {
	case strings.HasPrefix(fieldType, "list of "):
		var out []any
		for _, v := range candidates(strings.TrimPrefix(fieldType, "list of "), constraint) {
			out = append(out, []any{v})
		}
		return out
	case strings.HasPrefix(fieldType, "map to "):
		var out []any
		for _, v := range candidates(strings.TrimPrefix(fieldType, "map to "), "") {
			out = append(out, map[string]any{"x": v}, map[string]any{"version": v}, map[string]any{"http": v})
		}
		return out
	}
	switch fieldType {
	case "enum":
		var out []any
		for _, name := range strings.Split(constraint, ", ") {
			out = append(out, name)
		}
		return out
	case "integer":
		return []any{2, 0, 80, 443, 9080, 302, 1000}
	case "number":
		return []any{50, 0}
	case "boolean":
		return []any{true, false}
	case "duration":
		return []any{"7s", "0s"}
	}
	return []any{"x", "/x", "v2", "v1", "back", "shop.example.com", "back.default.svc.cluster.local", "other", "web.default.svc.cluster.local", "10.9.0.0/16", "10.9.0.1", "HTTP", "TCP", "eHh4", "/certs/x.pem", "us/east/1", ":authority", "443", "UNAVAILABLE", "5xx", "*/back.default.svc.cluster.local", "127.0.0.1:9999", "edge", "ECDHE-ECDSA-AES256-GCM-SHA384", "http"}
}

// path is the way to a field: names, 0 for the first entry of a list, x for a
// name in a map.
func path(field string) []string {
	field = strings.ReplaceAll(strings.ReplaceAll(field, "[]", ".0"), "<name>", "x")
	return strings.Split(field, ".")
}

// with is a copy of a value in which a field is set.
func with(v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if path[0] == "0" {
		list, _ := v.([]any)
		list = slices.Clone(list)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = with(list[0], path[1:], value)
		return list
	}
	object, _ := v.(map[string]any)
	if object = maps.Clone(object); object == nil {
		object = map[string]any{}
	}
	object[path[0]] = with(object[path[0]], path[1:], value)
	return object
}

func specObject(t *testing.T, kind *schema.Kind, spec any) *schema.Object {
	return objectOf(t, kind, schema.DefaultNamespace, "x", []byte(asText(t, spec)))
}

// told is what a sidecar, a router and an ingress get, empty for a spec that is
// not valid.
func told(t *testing.T, kind *schema.Kind, spec any) answers {
	o := specObject(t, kind, spec)
	found := schema.Validate(o)
	if found.Err() != nil {
		return answers{refused: found}
	}
	settings := mesh.DefaultSettings()
	settings.ProxyHTTPPort = 15002
	settings.IngressCertificates = map[string]mesh.Certificate{"x": {CertificateFile: "/x/c", KeyFile: "/x/k", CAFile: "/x/a"}}
	settings.ClientCertificates = settings.IngressCertificates
	settings.WorkloadCertificates.Certificate = mesh.Certificate{CertificateFile: "/w/c", KeyFile: "/w/k", CAFile: "/w/a"}
	objs := []*schema.Object{o}
	for _, other := range effectObjects(t) {
		if other.Key() != o.Key() {
			objs = append(objs, other)
		}
	}
	snapshot := mesh.NewSnapshot(1, settings, objs)
	var out answers
	effectCompiler.Advance(snapshot)
	problems := slices.Concat(found, snapshot.Problems, effectCompiler.Problems())
	for _, node := range []string{
		"sidecar~10.1.0.1~web-1.default~default.svc.cluster.local", "sidecar~10.7.7.7~a.other~other.svc.cluster.local",
		"router~10.1.0.9~edge-1.default~default.svc.cluster.local", "ingress~10.1.0.8~in-1.default~default.svc.cluster.local",
	} {
		config, more := effectCompiler.Proxy(snapshot.TraitsOf(proxy(t, node)))
		problems = append(problems, more...)
		out.v3 += spelledV3(t, config) + members(t, snapshot, config)
		out.v1 += spelledV1(t, config) + members(t, snapshot, config)
	}
	for _, p := range problems {
		if p.Object == o.Key().Ref() && (p.Reason == diag.NotHonoured || p.Reason == diag.FieldNotSupported) {
			out.problems += p.Field + "\n"
		}
	}
	return out
}

// effectCompiler goes from one object to the next, which TestIncrementalIsAsFromScratch
// says is the same as to begin anew.
var effectCompiler = compile.NewCompiler()

var parsedWorld []*schema.Object

func effectObjects(t *testing.T) []*schema.Object {
	if parsedWorld == nil {
		parsedWorld = objects(t, effectWorld)
	}
	return parsedWorld
}

// members are the endpoints that clusters ask for, the same for both.
func members(t *testing.T, snapshot *mesh.Snapshot, config *ir.Config) string {
	var out []ir.Endpoint
	for _, c := range config.Clusters {
		if c.EndpointKey == "" {
			continue
		}
		for _, i := range snapshot.Endpoints(mesh.ParseServiceKey(c.EndpointKey)) {
			out = append(out, ir.Endpoint{Host: i.Address, Port: i.EndpointPort, Zone: i.Zone, Weight: i.Weight, MutualTLS: i.MutualTLS})
		}
	}
	return asText(t, out)
}

func spelledV3(t *testing.T, config *ir.Config) string {
	var out strings.Builder
	clusters, _ := v3.Clusters(config)
	listeners, _ := v3.Listeners(config, "10.1.0.1")
	marshalAll(t, &out, clusters)
	marshalAll(t, &out, listeners)
	for _, table := range config.RouteTables {
		routes, _ := v3.Routes(table)
		marshalAll(t, &out, []proto.Message{routes})
	}
	return out.String()
}

func marshalAll[M proto.Message](t *testing.T, out *strings.Builder, messages []M) {
	for _, m := range messages {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
}

func spelledV1(t *testing.T, config *ir.Config) string {
	clusters, _ := v1.Clusters(config)
	listeners, _ := v1.Listeners(config, "10.1.0.1")
	all := []any{clusters, listeners}
	for _, table := range config.RouteTables {
		routes, _ := v1.Routes(table)
		all = append(all, routes)
	}
	return markOfTable.ReplaceAllString(asText(t, all), "")
}

// markOfTable is the part of a table's name that says what its connections must meet. v1 has
// no setting that follows from it.
var markOfTable = regexp.MustCompile(`\|tls=[0-9a-f]+`)

func asText(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
