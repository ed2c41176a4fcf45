package schema

import (
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"
)

// asked is a request, as far as the drawn conditions look at it.
type asked struct {
	path, method, header string // header is "-" where the request has none
	port                 uint32
	namespace, gateway   string
}

// meets is what a condition means, said once more.
func (r asked) meets(m *networking.HTTPMatchRequest) bool {
	text := func(m *networking.StringMatch, value string) bool {
		switch by := m.GetMatchType().(type) {
		case *networking.StringMatch_Exact:
			return value == by.Exact
		case *networking.StringMatch_Prefix:
			return strings.HasPrefix(value, by.Prefix)
		}
		return true
	}
	path, uri := r.path, m.Uri
	if m.IgnoreUriCase {
		path, uri = strings.ToLower(path), lower(uri)
	}
	header, asks := m.Headers["h"]
	without, excludes := m.WithoutHeaders["h"]
	has := r.header != "-"
	return text(uri, path) && text(m.Method, r.method) &&
		(!asks || has && text(header, r.header)) && (!excludes || !has || !text(without, r.header)) &&
		(m.Port == 0 || m.Port == r.port) && (m.SourceNamespace == "" || m.SourceNamespace == r.namespace) &&
		(len(m.Gateways) == 0 || m.Gateways[0] == r.gateway)
}

// TestCovers: no request meets a condition and not the one that covers it.
func TestCovers(t *testing.T) {
	text := func(values ...string) *rapid.Generator[*networking.StringMatch] {
		return rapid.Custom(func(t *rapid.T) *networking.StringMatch {
			value := rapid.SampledFrom(values).Draw(t, "value")
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				return nil
			case 1:
				return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: value}}
			}
			return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: value}}
		})
	}
	paths, methods, headers := []string{"/", "/a", "/A", "/ab", "/a/B"}, []string{"GET", "G"}, []string{"x", "xy"}
	condition := rapid.Custom(func(t *rapid.T) *networking.HTTPMatchRequest {
		m := &networking.HTTPMatchRequest{
			Uri: text(paths...).Draw(t, "uri"), IgnoreUriCase: rapid.Bool().Draw(t, "any case"), Method: text(methods...).Draw(t, "method"),
			Port: rapid.SampledFrom([]uint32{0, 0, 80}).Draw(t, "port"), SourceNamespace: rapid.SampledFrom([]string{"", "n"}).Draw(t, "namespace"),
		}
		if rapid.Bool().Draw(t, "headers") {
			m.Headers = map[string]*networking.StringMatch{"h": text(headers...).Draw(t, "header")}
		}
		if rapid.Bool().Draw(t, "without") {
			m.WithoutHeaders = map[string]*networking.StringMatch{"h": text(headers...).Draw(t, "header")}
		}
		if rapid.Bool().Draw(t, "gateways") {
			m.Gateways = []string{rapid.SampledFrom([]string{"mesh", "g"}).Draw(t, "gateway")}
		}
		return m
	})
	covering, drawn := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := condition.Draw(t, "a"), condition.Draw(t, "b")
		if rapid.Bool().Draw(t, "alike") { // Two conditions with nothing in common hardly ever cover each other.
			port := b.Port
			b = a.DeepCopy()
			b.Port = max(b.Port, port)
		}
		drawn++
		if !covers(a, b) {
			return
		}
		covering++
		for range 50 {
			r := asked{
				rapid.SampledFrom(paths).Draw(t, "path"), rapid.SampledFrom(methods).Draw(t, "method"), rapid.SampledFrom(append(headers, "-")).Draw(t, "header"),
				rapid.SampledFrom([]uint32{80, 81}).Draw(t, "port"), rapid.SampledFrom([]string{"n", "m"}).Draw(t, "namespace"), rapid.SampledFrom([]string{"mesh", "g"}).Draw(t, "gateway"),
			}
			if r.meets(b) && !r.meets(a) {
				t.Fatalf("%+v meets\n%v\nand not\n%v", r, b, a)
			}
		}
	})
	if drawn >= 100 && covering == 0 {
		t.Error("no condition covers another")
	}
}
