package compile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

const pilotCases = "../../shared/conformance/pilot-v1"

// notYet are the kinds of the cases that nothing here compiles so far.
var notYet = []string{"EgressRule", "IngressRule", "VirtualService", "DestinationRule", "Gateway"}

// conformanceCase is case.yaml, as far as it matters here.
type conformanceCase struct {
	Request struct {
		Type, RouteName, ServiceKey string
		Node                        struct{ Role, String string }
	}
	MeshConfig                map[string]any
	Configs, NoEffectConfigs  []string
	Expected, ExpectedNoMixer string
	dir                       string
}

// TestPilotConformance compares with the bodies that Pilot 0.7.1 answered. A
// case that needs a part which is not built yet is skipped and says which.
func TestPilotConformance(t *testing.T) {
	files, err := filepath.Glob(pilotCases + "/cases/*/case.yaml")
	if err != nil || len(files) == 0 {
		if os.Getenv("CI") != "" {
			t.Fatalf("no cases in %s: %v", pilotCases, err)
		}
		t.Skipf("NOT CHECKED against Pilot: no cases in %s", pilotCases)
	}
	registry := pilotRegistry(t)
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			c := conformanceCase{dir: filepath.Dir(file)}
			readYAML(t, file, &c)
			c.run(t, registry)
		})
	}
}

func (c *conformanceCase) run(t *testing.T, registry []*schema.Object) {
	objs := slices.Clone(registry)
	for _, name := range c.Configs {
		if !slices.Contains(c.NoEffectConfigs, name) {
			objs = append(objs, pilotObject(t, filepath.Join(c.dir, name)))
		}
	}
	if c.Request.Node.Role == "ingress" || c.Request.Type == "sds" && c.Request.ServiceKey == "" {
		t.Skip("not yet: ingress proxies, and the list of all services")
	}
	snapshot := mesh.NewSnapshot(1, c.settings(t), objs)
	got := c.answer(t, snapshot)
	var want map[string]any
	readYAML(t, filepath.Join(c.dir, c.Expected), &want)
	if c.ExpectedNoMixer != "" {
		want = nil
		readYAML(t, filepath.Join(c.dir, c.ExpectedNoMixer), &want)
	}
	for _, body := range []map[string]any{want, got} {
		dropUnsupported(body)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("differs from Pilot (-want +got):\n%s", d)
	}
}

func (c *conformanceCase) settings(t *testing.T) *mesh.Settings {
	merged := map[string]any{}
	readYAML(t, pilotCases+"/mesh.yaml", &merged)
	maps.Copy(merged, c.MeshConfig)
	merged["mixerCheckServer"], merged["mixerReportServer"] = "", ""
	text, err := yaml.Marshal(merged)
	if err != nil {
		t.Fatal(err)
	}
	settings, problems := mesh.ParseSettings(text, "mesh.yaml")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return settings
}

// answer is the v1 body, through JSON.
func (c *conformanceCase) answer(t *testing.T, s *mesh.Snapshot) map[string]any {
	if c.Request.Type == "sds" {
		return asMap(t, v1.Endpoints(endpoints(s.Endpoints(mesh.ParseServiceKey(c.Request.ServiceKey)))))
	}
	node := proxy(t, c.Request.Node.String)
	config, _ := compile.Proxy(s, s.View(node))
	var body any
	var problems diag.List
	switch c.Request.Type {
	case "cds":
		body, problems = v1.Clusters(config)
	case "lds":
		body, problems = v1.Listeners(config, node.IP)
	case "rds":
		body, problems = v1.Routes(routeTable(config, c.Request.RouteName))
	}
	if len(problems) > 0 {
		t.Errorf("v1 cannot say everything: %v", problems)
	}
	return asMap(t, body)
}

func endpoints(instances []*mesh.Instance) []ir.Endpoint {
	var out []ir.Endpoint
	for _, i := range instances {
		out = append(out, ir.Endpoint{IP: i.Address, Port: i.EndpointPort, Zone: i.Zone, Weight: i.Weight})
	}
	return out
}

func routeTable(c *ir.Config, name string) *ir.RouteTable {
	for _, table := range c.RouteTables {
		if table.Name == name {
			return table
		}
	}
	return &ir.RouteTable{Name: name}
}

// dropUnsupported takes out of both bodies what cases have because of parts of
// their registry that ServiceEntry has no word for: the management ports, and
// the HTTPS port of a service with an external name, which Pilot served as
// HTTP.
func dropUnsupported(body map[string]any) {
	unsupported := func(v any) bool {
		name := v.(map[string]any)["name"].(string)
		return name == "in.3333" || name == "in.9999" ||
			strings.HasPrefix(name, "tcp_10.1.1.") && (strings.HasSuffix(name, "_3333") || strings.HasSuffix(name, "_9999")) ||
			strings.HasSuffix(name, "_0.0.0.0_443") || strings.HasPrefix(name, "httpsbin.")
	}
	for _, list := range []string{"clusters", "listeners", "virtual_hosts"} {
		if items, ok := body[list].([]any); ok {
			body[list] = slices.DeleteFunc(items, unsupported)
		}
	}
}

func asMap(t *testing.T, v any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func readYAML(t *testing.T, file string, to any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, to); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// pilotRegistry is registry.yaml as ServiceEntries.
func pilotRegistry(t *testing.T) []*schema.Object {
	var registry struct {
		Services []struct {
			Hostname, Address, ExternalName string
			Ports                           []map[string]any
			Instances                       []struct {
				IP, ServicePortName, AZ string
				Port                    int
				Labels                  map[string]string
			}
		}
	}
	readYAML(t, pilotCases+"/registry.yaml", &registry)
	var out []*schema.Object
	for _, svc := range registry.Services {
		ports := svc.Ports
		for _, p := range ports {
			p["number"] = p["port"]
			delete(p, "port")
		}
		spec := map[string]any{"hosts": []string{svc.Hostname}, "ports": ports, "location": "MESH_INTERNAL", "resolution": "STATIC"}
		if svc.Address != "" {
			spec["addresses"] = []string{svc.Address}
		}
		if svc.ExternalName != "" {
			spec["resolution"] = "DNS"
		}
		byIP := map[string]map[string]any{}
		var eps []any
		for _, i := range svc.Instances {
			if byIP[i.IP] == nil {
				byIP[i.IP] = map[string]any{"address": i.IP, "labels": i.Labels, "locality": i.AZ, "ports": map[string]int{}}
				eps = append(eps, byIP[i.IP])
			}
			byIP[i.IP]["ports"].(map[string]int)[i.ServicePortName] = i.Port
		}
		spec["endpoints"] = eps
		out = append(out, object(t, "ServiceEntry", strings.Split(svc.Hostname, ".")[0], spec))
	}
	return out
}

// pilotObject reads a config object; an ExternalService is a ServiceEntry
// under its old name.
func pilotObject(t *testing.T, file string) *schema.Object {
	var o struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     map[string]any
	}
	readYAML(t, file, &o)
	switch o.Kind {
	case "RouteRule", "DestinationPolicy":
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return objects(t, string(text))[0]
	case "ExternalService":
		o.Spec["resolution"] = o.Spec["discovery"]
		delete(o.Spec, "discovery")
		return object(t, "ServiceEntry", o.Metadata.Name, o.Spec)
	}
	if !slices.Contains(notYet, o.Kind) {
		t.Fatalf("%s: unexpected kind %s", file, o.Kind)
	}
	t.Skipf("not yet: %s", o.Kind)
	return nil
}

// object is one that need not pass validation: Pilot took blocks as hosts.
func object(t testing.TB, kind, name string, spec map[string]any) *schema.Object {
	k, ok := schema.KindByName(kind)
	if !ok {
		t.Fatalf("no kind %s", kind)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	o := objectOf(t, k, name, text)
	if _, err := o.Spec(); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", strconv.Quote(name), err))
	}
	return o
}
