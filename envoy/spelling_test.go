package envoy_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/internal/golden"
	"github.com/pilot-api/pilot-api/internal/v1schema"
	"github.com/pilot-api/pilot-api/ir"
)

// TestSpelling compares the v1 and v3 resources of each case with its archive, and checks them
// against the v1 schemas and the v3 constraints.
func TestSpelling(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			arc := golden.Open(t, filepath.Join("testdata", c.name+".txtar"))
			problems := spellV1(t, arc, c.config)
			problems = append(problems, spellV3(t, arc, c.config)...)
			lines := make([]string, len(problems))
			for i, p := range problems {
				lines[i] = p.String()
			}
			arc.Want("problems.txt", []byte(strings.Join(lines, "\n")))
		})
	}
}

func spellV1(t *testing.T, arc *golden.Archive, cfg *ir.Config) diag.List {
	want := func(name, schema string, body any, empty bool) {
		text, err := json.MarshalIndent(body, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		v1schema.Validate(t, schema, text)
		if !empty {
			arc.Want("v1/"+name+".json", text)
		}
	}
	clusters, problems := v1.Clusters(cfg)
	want("clusters", "cds-response", clusters, len(clusters.Clusters) == 0)
	listeners, more := v1.Listeners(cfg, envoytest.ProxyIP)
	problems = append(problems, more...)
	want("listeners", "lds-response-stock", listeners, len(listeners.Listeners) == 0)
	for _, table := range cfg.RouteTables {
		routes, more := v1.Routes(table)
		problems = append(problems, more...)
		want("routes/"+table.Name, "rds-response", routes, false)
	}
	return problems
}

func spellV3(t *testing.T, arc *golden.Archive, cfg *ir.Config) diag.List {
	clusters, problems := v3.Clusters(cfg)
	for _, c := range clusters {
		wantV3(t, arc, "clusters/"+c.GetName(), c)
	}
	listeners, more := v3.Listeners(cfg, envoytest.ProxyIP)
	problems = append(problems, more...)
	for _, l := range listeners {
		wantV3(t, arc, "listeners/"+l.GetName(), l)
	}
	for _, table := range cfg.RouteTables {
		routes, more := v3.Routes(table)
		problems = append(problems, more...)
		wantV3(t, arc, "routes/"+table.Name, routes)
	}
	return problems
}

func wantV3(t *testing.T, arc *golden.Archive, name string, m proto.Message) {
	t.Helper()
	if err := validateDeeply(m); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.JSONToYAML(text); err != nil {
		t.Fatal(err)
	}
	arc.Want("v3/"+name+".yaml", text)
}

// validateDeeply checks the constraints of a message. Unlike ValidateAll, it also checks the
// messages that are packed in an Any.
func validateDeeply(m proto.Message) error {
	return protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		last := p.Index(-1)
		if k := last.Step.Kind(); k != protopath.RootStep && k != protopath.AnyExpandStep {
			return nil
		}
		checked, ok := last.Value.Message().Interface().(interface{ ValidateAll() error })
		if !ok {
			return nil
		}
		return checked.ValidateAll()
	})
}
