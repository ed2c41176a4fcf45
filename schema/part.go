package schema

import (
	"cmp"
	"slices"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
)

// Part is the part of an object that a manager applies.
type Part struct {
	Kind *Kind
	// Version is the version of the kind in which the part is written.
	Version string
	// Fields are the fields of the object, apiVersion, kind and name included, in
	// the written form. Private ones are marks, as in the shown object.
	Fields map[string]any

	private map[string]given
}

// given is a private field with its mark.
type given struct{ text, mark string }

// DecodePart decodes a part as Decode decodes an object, but requires only the
// kind. A missing name or namespace is that of the target. Fields that the server
// sets are dropped, and managedFields are rejected.
func DecodePart(text []byte, target Key) (*Part, diag.List) {
	doc, list := single(text, Options{})
	if list != nil {
		return nil, list
	}
	t, list := doc.parse()
	if list.Err() != nil {
		return nil, list
	}
	d := candidate{}
	if d.top, _ = t.value.(map[string]any); d.top == nil {
		return nil, doc.malformed(0, 0, "a part of an object must be a map with the fields apiVersion, kind and metadata")
	}
	d.normalisePart(target)
	d.checkPart()
	d.list = slices.DeleteFunc(d.list, func(p diag.Problem) bool { return p.Reason == diag.FieldRequired })
	if d.kind == nil {
		d.required("kind", "must be given")
	}
	if list := append(list, t.tell("", &d)...); list.Err() != nil {
		return nil, list
	}
	version := cmp.Or(d.version, d.kind.Version)
	d.top["apiVersion"] = d.kind.In(version)
	d.kind.spread(d.top)
	p := &Part{Kind: d.kind, Version: version, Fields: d.top, private: map[string]given{}}
	p.seal()
	return p, d.list
}

// ofServer are the fields of metadata that only the server sets.
var ofServer = []string{"creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}

func (d *candidate) normalisePart(target Key) {
	if d.top["metadata"] == nil {
		d.top["metadata"] = map[string]any{}
	}
	d.normalise(target.Namespace)
	meta, ok := d.top["metadata"].(map[string]any)
	if !ok {
		return
	}
	if target.Name != "" && meta["name"] == nil {
		meta["name"] = target.Name
	}
	for _, name := range ofServer {
		delete(meta, name)
	}
	if meta["managedFields"] != nil {
		d.forbidden("metadata.managedFields", "must not be applied: the server sets them")
	}
}

// checkPart leaves out checks that need a whole object.
func (d *candidate) checkPart() {
	if !d.checkKind() {
		return
	}
	d.structure("", "object", d.top)
	d.checkNames()
	d.checkMeta()
	if spec, ok := d.top["spec"].(map[string]any); ok && d.kind != nil {
		d.structure("spec", d.kind.Singular, spec)
	}
}

// Key returns the key of the object.
func (p *Part) Key() Key {
	meta, _ := p.Fields["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	return KeyOf(p.Kind, namespace, name)
}

// seal replaces private fields by marks.
func (p *Part) seal() {
	spec, _ := p.Fields["spec"].(map[string]any)
	key := p.Key()
	for _, name := range p.Kind.private {
		if text, ok := spec[name].(string); ok && !credential.IsMark(text) {
			mark := credential.Mark(key.Namespace+"/"+key.Name, text)
			p.private[name], spec[name] = given{text, mark}, mark
		}
	}
}

// Reveal replaces the marks by the private fields of the part, in an object that
// was made with it.
func (p *Part) Reveal(object map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	for name, field := range p.private {
		if spec[name] == field.mark {
			spec[name] = field.text
		}
	}
}
