package compile

import (
	"github.com/pilot-api/pilot-api/diag"
)

func (p *plan) report(problem diag.Problem) { p.problems.Add(problem) }

// firstBecause says why the first of two equal claims takes precedence.
func (p *plan) firstBecause() string {
	if p.pilot().AnyNamespaceRules {
		return "comes first by namespace and name"
	}
	return "is older, or comes first by name"
}

func (p *plan) reportNoDestination(ref diag.Ref) {
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.FieldRequired, Code: diag.MissingField, Object: ref, Field: "spec.destination",
		Message: "the object is left out: it must say which service it is for",
	})
}

// notHonoured reports a setting of an object that no proxy will follow.
func (p *plan) notHonoured(code diag.Code, ref diag.Ref, field, message string) {
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Code: code, Object: ref, Field: field, Message: message,
	})
}

// conflict reports an object, or a part of it, that lost to another object.
func (p *plan) conflict(code diag.Code, ref diag.Ref, field, message string) {
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: code, Object: ref, Field: field, Message: message,
	})
}

// field is a part of an object that may be set and has no translation.
type field struct {
	set     bool
	path    string
	message string
}

// unsupported reports the fields that are set.
func (p *plan) unsupported(code diag.Code, ref diag.Ref, at string, fields []field) {
	for _, f := range fields {
		if f.set {
			p.notHonoured(code, ref, at+"."+f.path, f.message)
		}
	}
}
