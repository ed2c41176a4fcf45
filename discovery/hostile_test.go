package discovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestEnvoyTakesWhatIsPublished: whatever is stored, also past validation, is
// published, to proxies that had something before as to new ones, and taken by a
// real Envoy.
func TestEnvoyTakesWhatIsPublished(t *testing.T) {
	outside.Slow(t)
	program := outside.Tool(t, "envoy")
	dir := t.TempDir()
	selfsigned.Write(t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	selfsigned.NewAuthority(t, dir).Revoke(t)
	rapid.Check(t, func(rt *rapid.T) {
		objs := meshgen.Objects(rt)
		src := newObjects(objs...)
		settings := mesh.DefaultSettings()
		settings.ProxyHTTPPort = 15002
		s := discovery.New(discovery.Options{Source: src, Settings: settings})
		publish := func() {
			once, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Run(once); err != context.Canceled {
				rt.Fatal(err)
			}
		}
		node := rapid.SampledFrom(meshgen.Nodes).Draw(rt, "node")
		publish()
		pollAll(rt, s, node)
		for i, o := range objs {
			objs[i] = corrupted(rt, o)
		}
		src.set(objs...)
		publish()
		newcomer := rapid.SampledFrom(meshgen.Nodes).Draw(rt, "newcomer")
		for _, n := range []string{node, newcomer} {
			pollAll(rt, s, n)
		}
		if frozen := frozen(s); len(frozen) > 0 || s.Revision() != src.revision {
			logAll(rt, objs)
			rt.Fatalf("published revision %d of %d: %v", s.Revision(), src.revision, frozen)
		}
		if _, err := outside.Validate(t.Context(), program, dir, asBootstrap(t, s, newcomer)); err != nil {
			logAll(rt, objs)
			rt.Fatalf("Envoy refuses what is published: %v", err)
		}
	})
}

func logAll(rt *rapid.T, objs []*schema.Object) {
	for _, o := range objs {
		rt.Logf("%s %s: %s", o.Kind.Kind, o.Meta.Name, o.SpecJSON())
	}
}

// frozen are the problems of a configuration that does not move on.
func frozen(s *discovery.Publisher) diag.List {
	return slices.DeleteFunc(s.Report().Problems, func(p diag.Problem) bool {
		return !strings.Contains(p.Message, "keep an older configuration") && !strings.Contains(p.Message, "keep what they had")
	})
}

// pollAll asks for everything that there is, in both versions.
func pollAll(rt *rapid.T, s *discovery.Publisher, node string) {
	for _, typeURL := range []string{discovery.ClusterType, discovery.ListenerType, discovery.RouteType, discovery.EndpointType} {
		if _, err := s.V3(typeURL, mesh.Node{ID: node}, "", nil); err != nil {
			rt.Fatal(err)
		}
	}
	_, clusters := s.V1Clusters(node)
	_, listeners := s.V1Listeners(node)
	_, routes := s.V1Routes(node, "80")
	if err := errors.Join(clusters, listeners, routes); err != nil {
		rt.Fatal(err)
	}
}

// What stands in place of good values.
var (
	hostileTexts = []string{
		"", "a\x00b", "a\nb", "é", "%", "%FOO%", "*", "*a*", "a*b", "*.*", "UPPER.example", strings.Repeat("a", 300), " ", "host", ":path",
		`\p{Letter}`, `\x{10FFFF}`, `(`, strings.Repeat("[a-z]{1,1000}", 20), "9223372036s", "2562047h", "-1s", "1ns", "99999h", "::1", "0:0::1", "1.2.3.4/33", "1.2.3", "/a?b", "a/b",
	}
	hostileKeys    = []string{"host", "Host", ":authority", ":path", "", "a b", "é", "x\x00", "X"}
	hostileNumbers = []any{0, -1, 1, 65536, 2147483647, 4294967295, 0.001, 101, 1000}
)

// corrupted is the object with some values that nobody should write. It may not
// decode, which is no fault.
func corrupted(rt *rapid.T, o *schema.Object) *schema.Object {
	var good any
	if err := json.Unmarshal(o.SpecJSON(), &good); err != nil {
		rt.Fatal(err)
	}
	spec, err := json.Marshal(corrupt(rt, good))
	if err != nil {
		rt.Fatal(err)
	}
	out, err := schema.New(o.Kind, o.Meta, spec)
	if err != nil {
		rt.Fatal(err)
	}
	return out
}

func corrupt(rt *rapid.T, value any) any {
	hit := rapid.IntRange(0, 19).Draw(rt, "hit") == 0
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out[key] = corrupt(rt, v[key])
			if _, text := v[key].(string); text && hit {
				out[rapid.SampledFrom(hostileKeys).Draw(rt, "key")] = out[key]
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, entry := range v {
			out = append(out, corrupt(rt, entry))
		}
		if hit && len(out) > 0 {
			out = append(out, out[0])
		}
		return out
	case string:
		if hit {
			return rapid.SampledFrom(hostileTexts).Draw(rt, "text")
		}
	case float64:
		if hit {
			return rapid.SampledFrom(hostileNumbers).Draw(rt, "number")
		}
	}
	return value
}

// certificateFile is where a resource names a file of TLS.
var certificateFile = regexp.MustCompile(`("(certificate_chain|trusted_ca|private_key|crl)":\s*\{"filename":\s*)"[^"]*"`)

// asBootstrap is what a proxy is told, as if it had been there from the start,
// with the test's own certificate. Each route table is in a listener of its own.
func asBootstrap(t *testing.T, s *discovery.Publisher, node string) []byte {
	t.Helper()
	type object = map[string]any
	read := func(typeURL string, names ...string) []any {
		a, err := s.V3(typeURL, mesh.Node{ID: node}, "", names)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Resources []any }
		if err := json.Unmarshal(a.Body, &answer); err != nil {
			t.Fatal(err)
		}
		for _, r := range answer.Resources {
			delete(r.(object), "@type")
		}
		return answer.Resources
	}
	options := envoy.DefaultBootstrap()
	options.NodeID, options.Server = node, "http://127.0.0.1:8080"
	text, err := envoy.Bootstrap(options)
	if err != nil {
		t.Fatal(err)
	}
	bootstrap := object{}
	if err := yaml.Unmarshal(text, &bootstrap); err != nil {
		t.Fatal(err)
	}
	delete(bootstrap, "dynamic_resources")
	clusters, listeners := read(discovery.ClusterType), read(discovery.ListenerType)
	for i, table := range read(discovery.RouteType) {
		listeners = append(listeners, object{
			"name":    fmt.Sprintf("table-%d", i),
			"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 20000 + i}},
			"filter_chains": []any{object{"filters": []any{object{"name": "http", "typed_config": object{
				"@type":        "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
				"stat_prefix":  "http",
				"route_config": table,
				"http_filters": []any{object{"name": "router", "typed_config": object{"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}},
			}}}}},
		})
	}
	static := bootstrap["static_resources"].(object)
	static["clusters"] = append(static["clusters"].([]any), clusters...)
	static["listeners"] = listeners
	if text, err = json.Marshal(bootstrap); err != nil {
		t.Fatal(err)
	}
	return certificateFile.ReplaceAllFunc(text, func(found []byte) []byte {
		parts := certificateFile.FindSubmatch(found)
		file := `"tls.crt"`
		switch string(parts[2]) {
		case "private_key":
			file = `"tls.key"`
		case "crl":
			file = `"authority.crl"`
		}
		return slices.Concat(parts[1], []byte(file))
	})
}
