package compile

import (
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
)

// TestReporter checks what a reporter makes of each kind of report. It needs no
// model.
func TestReporter(t *testing.T) {
	ref := diag.Ref{Kind: "RouteRule", Namespace: "shop", Name: "cart"}
	warning := func(reason diag.Reason, code diag.Code, field, message string) diag.Problem {
		return diag.Problem{Severity: diag.Warning, Reason: reason, Code: code, Object: ref, Field: field, Message: message}
	}
	for name, c := range map[string]struct {
		report func(*reporter)
		want   diag.List
	}{
		"nothing": {func(*reporter) {}, nil},
		"a problem": {
			func(rp *reporter) { rp.report(warning(diag.Conflict, diag.AsPilot, "spec", "as it is")) },
			diag.List{warning(diag.Conflict, diag.AsPilot, "spec", "as it is")},
		},
		"a setting without effect": {
			func(rp *reporter) { rp.notHonoured(diag.AsPilot, ref, "spec.match", "not followed") },
			diag.List{warning(diag.NotHonoured, diag.AsPilot, "spec.match", "not followed")},
		},
		"a lost claim": {
			func(rp *reporter) { rp.conflict(diag.AsPilot, ref, "spec.host", "another is older") },
			diag.List{warning(diag.Conflict, diag.AsPilot, "spec.host", "another is older")},
		},
		"no destination": {
			func(rp *reporter) { rp.reportNoDestination(ref) },
			diag.List{warning(diag.FieldRequired, diag.MissingField, "spec.destination",
				"the object is left out: it must say which service it is for")},
		},
		"of several fields, those that are set": {
			func(rp *reporter) {
				rp.unsupported(diag.AsPilot, ref, "spec.http[0]", []field{
					{true, "mirror", "no mirror"}, {false, "fault", "no fault"}, {true, "cors", "no CORS"},
				})
			},
			diag.List{
				warning(diag.NotHonoured, diag.AsPilot, "spec.http[0].mirror", "no mirror"),
				warning(diag.NotHonoured, diag.AsPilot, "spec.http[0].cors", "no CORS"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var found diag.Collector
			c.report(&reporter{&found})
			if got := found.List(); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
