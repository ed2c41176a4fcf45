package compile_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	accessv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networkrbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/compile"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// otherwise are the recorded cases in which this project decides differently, with the reason.
var otherwise = map[string]string{
	"custom":     "there are no external authorizers: what fits a CUSTOM policy is refused",
	"td-aliases": "a mesh has one trust domain",
}

// accessWorkload is the workload that the recorded policies are for.
const accessWorkload = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: httpbin, namespace: foo}
spec:
  hosts: [httpbin.foo.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 5000, name: tcp, protocol: TCP}]
  endpoints: [{address: 10.1.0.9, labels: {app: httpbin, version: v1}}]
`

// TestIstioDecidesTheSame asks an evaluator of Envoy's RBAC filters what becomes of random
// requests, by the filters that Istio made of a policy and by those of this project.
func TestIstioDecidesTheSame(t *testing.T) {
	dir := outside.Shared(t, "conformance", "istio-1.31", "authz")
	inputs, err := filepath.Glob(filepath.Join(dir, "*-in.yaml"))
	if err != nil || len(inputs) == 0 {
		t.Fatal(inputs, err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(filepath.Base(input), "-in.yaml")
		t.Run(name, func(t *testing.T) {
			for part, reason := range otherwise {
				if strings.Contains(name, part) {
					t.Skip(reason)
				}
			}
			policies := readText(t, input)
			var recorded []*accessv3.RBAC
			for _, suffix := range []string{"-out.yaml", "-out1.yaml", "-out2.yaml"} {
				if text, err := os.ReadFile(filepath.Join(dir, name+suffix)); err == nil {
					recorded = append(recorded, recordedRules(t, text)...)
				}
			}
			ours := ownRules(t, policies, strings.HasPrefix(name, "http"))
			words := newWords(t, policies)
			verdicts := map[bool]int{}
			for seed := range uint64(3000) {
				r := words.request(rand.New(rand.NewPCG(seed, 7)))
				want, got := r.Passes(t, recorded), r.Passes(t, ours)
				if verdicts[want]++; want != got {
					t.Fatalf("Istio takes it: %v, we: %v\n%+v", want, got, r)
				}
			}
			t.Logf("%d taken, %d refused", verdicts[true], verdicts[false])
		})
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// recordedRules returns the rules that are enforced in a recorded file.
func recordedRules(t *testing.T, text []byte) []*accessv3.RBAC {
	t.Helper()
	var out []*accessv3.RBAC
	for _, document := range strings.Split(string(text), "\n---\n") {
		asJSON, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var filter listenerv3.Filter
		if err := protojson.Unmarshal(asJSON, &filter); err != nil {
			t.Fatal(err)
		}
		if rules := rulesOf(t, filter.GetTypedConfig()); rules != nil {
			out = append(out, rules)
		}
	}
	return out
}

func rulesOf(t *testing.T, config *anypb.Any) *accessv3.RBAC {
	t.Helper()
	message, err := config.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	switch m := message.(type) {
	case *rbacv3.RBAC:
		return m.GetRules()
	case *networkrbacv3.RBAC:
		return m.GetRules()
	}
	return nil
}

// ownRules returns the rules that this project makes of policies for the workload.
func ownRules(t *testing.T, policies string, http bool) []*accessv3.RBAC {
	t.Helper()
	var objects []*schema.Object
	for _, doc := range schema.Split([]byte(accessWorkload+"\n---\n"+policies), "policies") {
		some, problems, err := doc.Objects(t.Context(), "foo")
		if err := errors.Join(err, problems.Err()); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, some...)
	}
	s := mesh.NewSnapshot(1, mesh.DefaultSettings(), objects)
	proxy, err := mesh.ParseProxy("sidecar~10.1.0.9~httpbin.foo~foo.svc.cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	config, _ := compile.Proxy(s, s.TraitsOf(proxy))
	var out []*accessv3.RBAC
	for _, l := range config.ListenersAt("10.1.0.9") {
		if l.IP != "10.1.0.9" || (l.Port == 80) != http {
			continue
		}
		encoded, _ := v3.Listener(l, v3.Polled(time.Second))
		for _, f := range encoded.GetFilterChains()[0].GetFilters() {
			if rules := rulesOf(t, f.GetTypedConfig()); rules != nil {
				out = append(out, rules)
			}
			manager := &hcmv3.HttpConnectionManager{}
			if f.GetTypedConfig().UnmarshalTo(manager) != nil {
				continue
			}
			for _, hf := range manager.GetHttpFilters() {
				if rules := rulesOf(t, hf.GetTypedConfig()); rules != nil {
					out = append(out, rules)
				}
			}
		}
	}
	return out
}

// words are the texts of policies, by what they are about.
type words struct{ of map[string][]string }

func newWords(t *testing.T, policies string) words {
	t.Helper()
	w := words{map[string][]string{}}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if when, ok := v["key"].(string); ok {
				for _, field := range []string{"values", "notValues"} {
					walk(when, v[field])
				}
				return
			}
			for k, one := range v {
				walk(strings.ToLower(strings.TrimPrefix(k, "not")), one)
			}
		case []any:
			for _, one := range v {
				walk(key, one)
			}
		case string:
			w.of[key] = append(w.of[key], v)
		}
	}
	for _, document := range strings.Split(policies, "\n---\n") {
		var tree any
		if err := yaml.Unmarshal([]byte(document), &tree); err != nil {
			t.Fatal(err)
		}
		walk("", tree)
	}
	for _, list := range w.of {
		slices.Sort(list)
	}
	return w
}

// some returns a text that fits one of those of some keys, or hardly does not.
func (w words) some(r *rand.Rand, keys ...string) string {
	var all []string
	for _, key := range keys {
		all = append(all, w.of[key]...)
	}
	if len(all) == 0 || r.IntN(4) == 0 {
		return []string{"", "x", "/x"}[r.IntN(3)]
	}
	text := all[r.IntN(len(all))]
	text = strings.NewReplacer("{**}", []string{"a", "a/b", ""}[r.IntN(3)], "{*}", []string{"a", "a/b", ""}[r.IntN(3)]).Replace(text)
	text = strings.ReplaceAll(text, "*", []string{"", "a", "a.b"}[r.IntN(3)])
	switch r.IntN(6) {
	case 0:
		return text + "a"
	case 1:
		return "a" + text
	case 2:
		return strings.ToUpper(text)
	}
	return text
}

func (w words) address(r *rand.Rand, keys ...string) netip.Addr {
	text, _, _ := strings.Cut(w.some(r, keys...), "/")
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(256))})
	}
	if r.IntN(3) == 0 {
		return address.Next()
	}
	return address
}

func (w words) request(r *rand.Rand) evaluator.AccessRequest {
	out := evaluator.AccessRequest{
		Direct: w.address(r, "ipblocks", "source.ip"), Remote: w.address(r, "remoteipblocks", "remote.ip"), Destination: w.address(r, "destination.ip"),
		SNI: w.some(r, "connection.sni"), Path: w.some(r, "paths"), Headers: map[string]string{}, Claims: map[string]string{}, FilterMetadata: map[string]string{},
	}
	if out.HasPeer = r.IntN(4) > 0; out.HasPeer {
		switch r.IntN(3) {
		case 0:
			out.Peer = "spiffe://" + w.some(r, "principals", "source.principal")
		case 1:
			out.Peer = fmt.Sprintf("spiffe://td/ns/%s/sa/a", w.some(r, "namespaces", "source.namespace"))
		default:
			namespace, account, ok := strings.Cut(w.some(r, "serviceaccounts", "source.serviceaccount"), "/")
			if !ok {
				namespace, account = "foo", namespace
			}
			out.Peer = fmt.Sprintf("spiffe://td/ns/%s/sa/%s", namespace, account)
		}
		if domain := w.some(r, "trustdomains"); domain != "" && r.IntN(3) == 0 {
			out.Peer = "spiffe://" + strings.TrimPrefix(domain, "/") + "/ns/a/sa/b"
		}
	}
	_, _ = fmt.Sscan(w.some(r, "ports", "destination.port"), &out.Port)
	out.Headers[":authority"], out.Headers[":method"] = w.some(r, "hosts"), w.some(r, "methods")
	if out.HasJWT = r.IntN(4) > 0; out.HasJWT {
		issuer, subject := w.some(r, "requestprincipals", "request.auth.principal"), ""
		if slash := strings.LastIndexByte(issuer, '/'); slash >= 0 {
			issuer, subject = issuer[:slash], issuer[slash+1:]
		} else if r.IntN(2) == 0 {
			issuer, subject = "", issuer
		}
		out.Claims["iss"], out.Claims["sub"] = issuer, subject
	}
	for key := range w.of {
		name, inside, _ := strings.Cut(strings.TrimSuffix(key, "]"), "[")
		switch {
		case name == "request.headers" && r.IntN(4) > 0:
			out.Headers[strings.ToLower(inside)] = w.some(r, key)
		case name == "request.auth.claims" && out.HasJWT && inside != "iss":
			out.Claims[strings.ReplaceAll(inside, "][", ".")] = w.some(r, key)
		case name == "request.auth.audiences" && out.HasJWT:
			out.Claims["aud"] = w.some(r, key)
		case name == "request.auth.presenter" && out.HasJWT:
			out.Claims["azp"] = w.some(r, key)
		case strings.HasPrefix(name, "experimental.") && r.IntN(4) > 0:
			out.FilterMetadata[strings.TrimPrefix(name, "experimental.")+"."+inside] = w.some(r, key)
		}
	}
	return out
}
