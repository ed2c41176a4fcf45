package compile_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/internal/golden"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestTranslate runs one archive a feature, from objects to what both Envoy
// versions get. Inputs are objects.yaml, proxy (a node identity) and, if need
// be, mesh.yaml; all registries share registry.yaml of the folder.
func TestTranslate(t *testing.T) {
	files, err := filepath.Glob("../testdata/translate/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	registry, err := os.ReadFile("../testdata/translate/registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) { translate(t, golden.Open(t, file), string(registry)) })
	}
}

func translate(t *testing.T, archive *golden.Archive, registry string) {
	settings, problems := mesh.ParseSettings(archive.Input("mesh.yaml"), "mesh.yaml")
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	objs := objects(t, registry+"\n---\n"+string(archive.Input("objects.yaml")))
	node := proxy(t, strings.TrimSpace(string(archive.Input("proxy"))))
	snapshot := mesh.NewSnapshot(1, settings, objs)
	config, found := compile.Proxy(snapshot, snapshot.TraitsOf(node))
	if err := ir.Validate(config); err != nil {
		t.Errorf("the compiled configuration contradicts itself: %v", err)
	}
	problems = append(append(problems, snapshot.Problems...), found...)
	v1Body, v1Problems := v1Answers(t, config, node.IP)
	v3Body, v3Problems := v3Answers(t, config, node.IP)
	archive.Want("problems.txt", lines(problems))
	archive.Want("ir.yaml", []byte(config.String()))
	archive.Want("v1.json", v1Body)
	archive.Want("v1-problems.txt", lines(v1Problems))
	archive.Want("v3.json", v3Body)
	archive.Want("v3-problems.txt", lines(v3Problems))
}

func lines(l diag.List) []byte { return []byte(l.Error()) }

func v1Answers(t *testing.T, c *ir.Config, ip string) ([]byte, diag.List) {
	var out struct {
		Clusters  any            `json:"clusters"`
		Listeners any            `json:"listeners"`
		Routes    map[string]any `json:"routes"`
	}
	var problems, more diag.List
	out.Clusters, problems = v1.Clusters(c)
	out.Listeners, more = v1.Listeners(c, ip)
	problems = append(problems, more...)
	out.Routes = map[string]any{}
	for _, table := range c.RouteTables {
		out.Routes[table.Name], more = v1.Routes(table)
		problems = append(problems, more...)
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return text, problems
}

func v3Answers(t *testing.T, c *ir.Config, ip string) ([]byte, diag.List) {
	clusters, problems := v3.Clusters(c)
	listeners, more := v3.Listeners(c, ip)
	problems = append(problems, more...)
	out := map[string][]json.RawMessage{}
	for _, m := range clusters {
		out["clusters"] = append(out["clusters"], protoText(t, m))
	}
	for _, m := range listeners {
		out["listeners"] = append(out["listeners"], protoText(t, m))
	}
	for _, table := range c.RouteTables {
		m, more := v3.Routes(table)
		problems = append(problems, more...)
		out["routes"] = append(out["routes"], protoText(t, m))
	}
	for _, s := range c.Secrets {
		out["secrets"] = append(out["secrets"], protoText(t, v3.Secret(s)))
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return text, problems
}

// protoText checks a message as Envoy would, and spells it without the white
// space that protojson varies on purpose.
func protoText(t *testing.T, m proto.Message) json.RawMessage {
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		if err := v.ValidateAll(); err != nil {
			t.Errorf("Envoy would refuse this: %v", err)
		}
	}
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
