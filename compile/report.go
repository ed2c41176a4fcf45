package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

func (p *plan) report(problem diag.Problem) { p.problems.Add(problem) }

// specs hands over the typed specs of a kind in tie-break order, and reports
// those that do not decode.
func specs[T any](p *plan, kind string, take func(*schema.Object, *T)) {
	for _, o := range p.inOrder(kind) {
		spec, err := o.Spec()
		typed, ok := spec.(*T)
		if err != nil || !ok {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.Malformed, Object: o.Key().Ref(), Field: "spec",
				Message: fmt.Sprintf("the object is left out, its spec does not decode: %v", err),
			})
			continue
		}
		take(o, typed)
	}
}

// inOrder are the objects of a kind in tie-break order: of the networking kinds
// the oldest first, as in Istio.
func (p *plan) inOrder(kind string) []*schema.Object {
	objects := p.snap.Objects(kind)
	if k, ok := schema.KindByName(kind); ok && k.Group == networkingGroup && !p.pilot().AnyNamespaceRules {
		return mesh.ByAge(objects)
	}
	return objects
}

const networkingGroup = "networking.istio.io"

// firstBecause says by what the first of two equal claims is the first.
func (p *plan) firstBecause() string {
	if p.pilot().AnyNamespaceRules {
		return "comes first by namespace and name"
	}
	return "is older, or comes first by name"
}

func (p *plan) reportNoDestination(o *schema.Object) {
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.FieldRequired, Object: o.Key().Ref(), Field: "spec.destination",
		Message: "the object is left out: it must say which service it is for",
	})
}

// notHonoured reports what an object says and no proxy will follow.
func (p *plan) notHonoured(ref diag.Ref, field, message string) {
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Object: ref, Field: field, Message: message,
	})
}

// conflict reports an object, or a part of it, that lost to another one.
func (p *plan) conflict(ref diag.Ref, field, message string) {
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Object: ref, Field: field, Message: message,
	})
}

// field is a part of an object that may be set and has no translation.
type field struct {
	set     bool
	path    string
	message string
}

// unsupported reports those that are set.
func (p *plan) unsupported(ref diag.Ref, at string, fields []field) {
	for _, f := range fields {
		if f.set {
			p.notHonoured(ref, at+"."+f.path, f.message)
		}
	}
}
