package evaluator_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

func drawWorld(rt *rapid.T) world {
	settings := mesh.DefaultSettings()
	settings.ProxyHTTPPort = 15002
	settings.WorkloadCertificates.Certificate = rapid.SampledFrom([]mesh.Certificate{{}, {CertificateFile: "/w.pem", KeyFile: "/wk.pem", CAFile: "/wa.pem"}}).Draw(rt, "workloads")
	settings.ClientCertificates = map[string]mesh.Certificate{"one": {CertificateFile: "/c.pem", KeyFile: "/k.pem", CAFile: "/ca.pem", CRLFile: rapid.SampledFrom([]string{"", "/ca.crl"}).Draw(rt, "revocations")}}
	if rapid.Bool().Draw(rt, "sane") {
		settings.V1Compatibility = mesh.V1Compatibility{}
	}
	node := meshgen.Proxy(rt, rapid.SampledFrom(meshgen.Proxies).Draw(rt, "node"))
	if rapid.Bool().Draw(rt, "networks") {
		settings.Networks = meshgen.Networks()
	}
	plain, _ := schema.Decode([]byte(asTheyCome), schema.Options{})
	return world{settings, append(meshgen.Objects(rt), plain), node}
}

// TestV1SaysWhatV3Says also shows that both readers take whatever is spelled:
// every cluster that a route names is there, every key of a cluster is
// answered, v1 answers keep Envoy's schemas.
//
// Where a back-end complains, differences are allowed as spelled.differences
// says. The objects complained about are then taken away, until there are no
// complaints: so every difference that was allowed came from one of them.
func TestV1SaysWhatV3Says(t *testing.T) {
	outside.Slow(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt)
		for {
			s, err := w.spell(t)
			if err != nil {
				rt.Fatal(err)
			}
			requests := meshgen.Requests(s.config, s.ip)
			if found := append(s.unexplained(requests), s.differences(requests)...); len(found) > 0 {
				rt.Fatalf("%s\nof the configuration\n%s", strings.Join(found, "\n"), s.config)
			}
			if len(s.complaints) == 0 {
				return
			}
			before := len(w.objects)
			w.objects = slices.DeleteFunc(slices.Clone(w.objects), func(o *schema.Object) bool { return s.complaints[o.Key().Ref()] })
			if len(w.objects) == before {
				rt.Fatalf("nobody can act on complaints about %v", s.complaints)
			}
		}
	})
}

func TestOrderOfObjectsHasNoEffect(t *testing.T) {
	outside.Slow(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt)
		want := w.bytes(t)
		w.objects = rapid.Permutation(w.objects).Draw(rt, "order")
		if d := cmp.Diff(want, w.bytes(t)); d != "" {
			rt.Fatalf("answers differ by the order of the same objects:\n%s", d)
		}
	})
}
