package schema

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// A header value may hold what Envoy fills in, such as %REQ(:path)% or
// %DOWNSTREAM_REMOTE_ADDRESS%, and %% for a percent sign.
var valueOperator = regexp.MustCompile(`%(?:[A-Z][A-Z0-9_]*(?:\([^)]*\))?(?::[0-9]+)?)?%`)

func (p *problems) headerValues(field string, h *networking.Headers) {
	for _, change := range []struct {
		name   string
		values map[string]string
	}{
		{".request.set", h.GetRequest().GetSet()}, {".request.add", h.GetRequest().GetAdd()},
		{".response.set", h.GetResponse().GetSet()}, {".response.add", h.GetResponse().GetAdd()},
	} {
		for _, name := range slices.Sorted(maps.Keys(change.values)) {
			value := change.values[name]
			if strings.Contains(valueOperator.ReplaceAllLiteralString(value, ""), "%") {
				p.invalidValue(keyField(field+change.name, name), value, "has a % that begins nothing Envoy could fill in, such as %REQ(:path)%; write %% for the sign itself")
			}
		}
	}
}
