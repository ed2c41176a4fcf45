package schema_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
)

// TestOnDemandAnnotation: only the known values are valid, and only on a Sidecar do they have
// an effect.
func TestOnDemandAnnotation(t *testing.T) {
	const sidecar = "apiVersion: networking.istio.io/v1\nkind: Sidecar\nspec: {outboundTrafficPolicy: {mode: ALLOW_ANY}}\n"
	const rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: a.example}\n"
	for _, test := range []struct{ object, value, want string }{
		{sidecar, "hosts", ""},
		{sidecar, "off", ""},
		{sidecar, "on", "metadata.annotations[pilot-api/on-demand]: must be hosts or off"},
		{sidecar, "", "must be hosts or off"},
		{sidecar, "Hosts", "must be hosts or off"},
		{rule, "hosts", "has no effect on a DestinationRule: write it on a Sidecar"},
	} {
		_, told := schema.Decode([]byte(test.object+"metadata: {name: x, annotations: {pilot-api/on-demand: '"+test.value+"'}}\n"), schema.Options{})
		if got := told.Error(); len(told) > 0 != (test.want != "") || !strings.Contains(got, test.want) {
			t.Errorf("%q: %v, want %q", test.value, told, test.want)
		}
	}
}
