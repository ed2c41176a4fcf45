package v3

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/ir"
)

// TestCheckHost: the short way says what the long one does.
func TestCheckHost(t *testing.T) {
	text := rapid.StringOf(rapid.SampledFrom([]rune("ab*.:\x00\r\né \t\u2028")))
	rapid.Check(t, func(rt *rapid.T) {
		h := &routev3.VirtualHost{Name: text.Draw(rt, "name"), Domains: rapid.SliceOfN(text, 0, 3).Draw(rt, "domains")}
		if got, want := checkHost(h), Check(h); (got == nil) != (want == nil) {
			rt.Errorf("%q %q: got %v, want %v", h.GetName(), h.GetDomains(), got, want)
		}
	})
}

// TestRefusedHostIsClosed: nothing of it is answered, and nobody else answers for
// a domain that it can have.
func TestRefusedHostIsClosed(t *testing.T) {
	open := []*ir.Route{{Clusters: []ir.WeightedCluster{{Name: "open", Weight: ir.WholeWeight}}}}
	host, problems := VirtualHost(&ir.VirtualHost{Name: "h", Domains: []string{"good", "b\nad"}, Routes: open})
	switch {
	case len(problems) != 1:
		t.Errorf("problems: %v", problems)
	case len(host.GetDomains()) != 1 || host.GetDomains()[0] != "good":
		t.Errorf("domains: %q", host.GetDomains())
	case len(host.GetRoutes()) != 1 || host.GetRoutes()[0].GetDirectResponse().GetStatus() != 503:
		t.Errorf("routes: %v", host.GetRoutes())
	}
	if err := Check(host); err != nil {
		t.Error(err)
	}
	if host, problems := VirtualHost(&ir.VirtualHost{Name: "h", Domains: []string{"b\nad"}, Routes: open}); host != nil || len(problems) != 1 {
		t.Errorf("without a domain: %v, problems %v", host, problems)
	}
}
