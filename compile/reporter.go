package compile

import "github.com/pilot-api/pilot-api/diag"

// reporter takes the problems that a computation finds. It knows nothing of the
// model: each problem names its object and the path of the field.
type reporter struct {
	problems *diag.Collector
}

// report adds a problem.
func (rp *reporter) report(problem diag.Problem) { rp.problems.Add(problem) }

// reportNoDestination reports an object that names no service.
func (rp *reporter) reportNoDestination(ref diag.Ref) {
	rp.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.FieldRequired, Code: diag.MissingField, Object: ref, Field: "spec.destination",
		Message: "the object is left out: it must say which service it is for",
	})
}

// notHonoured reports a setting of an object that no proxy will follow.
func (rp *reporter) notHonoured(code diag.Code, ref diag.Ref, field, message string) {
	rp.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Code: code, Object: ref, Field: field, Message: message,
	})
}

// conflict reports an object, or a part of it, that lost to another object.
func (rp *reporter) conflict(code diag.Code, ref diag.Ref, field, message string) {
	rp.report(diag.Problem{
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
func (rp *reporter) unsupported(code diag.Code, ref diag.Ref, at string, fields []field) {
	for _, f := range fields {
		if f.set {
			rp.notHonoured(code, ref, at+"."+f.path, f.message)
		}
	}
}
