package schema

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
)

// DefaultNamespace is the namespace of objects that name none.
const DefaultNamespace = "default"

// CheckNamespace returns an error if a text cannot be the name of a namespace.
func CheckNamespace(name string) error {
	if rule := formats["dns-label"]; !rule.ok(name) {
		return fmt.Errorf("the namespace %q must be %s", name, rule.want)
	}
	return nil
}

// Options are options for Decode.
type Options struct {
	// File is the file name in the positions of problems; "" for a request body.
	File string
	// Namespace is given to objects whose metadata names none; "" means
	// DefaultNamespace.
	Namespace string
	// Counted says that the limit on the number of values need not be checked: the
	// text was generated, and its generator has checked the limit (Outgrown).
	Counted bool
	// Known are the Violations of the stored object that the text is to replace. If
	// the text breaks no other rules, they become warnings.
	Known diag.List
}

// Decode reads exactly one object from a YAML or JSON text and validates its
// syntax, structure and meaning. A text that begins with { may be either. The
// object is nil if the list holds an error; warnings may come with an object. An
// empty text, or more than one document, is an error. Proto names (simple_cb) are
// accepted and written back in lower camel case (simpleCb). Decode drops a status,
// which clients send back.
func Decode(text []byte, opts Options) (*Object, diag.List) {
	if o, warnings := decodeWritten(text, opts); o != nil {
		return o, warnings
	}
	return decodeAny(text, opts)
}

// decodeAny reads any text, and reports what is wrong with it.
func decodeAny(text []byte, opts Options) (*Object, diag.List) {
	doc, list := single(text, opts)
	if list != nil {
		return nil, list
	}
	t, list := doc.parse()
	if list.Err() != nil {
		return nil, list
	}
	t.known = opts.Known
	return t.object(t.value, "", opts.Namespace)
}

// Validate checks an object that was built in code or by a patch, as strictly as
// Decode does. It does not accept proto names: the object must be in the written
// form. It returns nil at once for an object that Decode made, because the caller
// of Decode has its warnings.
func Validate(o *Object) diag.List {
	if o.decoded == o || o.isWritten() {
		return nil
	}
	return o.complaints()
}

// complaints returns all problems of an object.
func (o *Object) complaints() diag.List {
	doc := Document{Text: o.Written()}
	if list := doc.tooLong(false); list != nil {
		return list
	}
	t, list := doc.parse()
	if list.Err() != nil {
		return list
	}
	var d candidate
	d.top, _ = t.value.(map[string]any)
	d.gather()
	d.spell(false)
	d.check()
	if o.Meta.Namespace == "" && !o.Kind.Cluster {
		d.required("metadata.namespace", "must be given")
	}
	list = d.finish()
	for i := range list {
		list[i].Object = o.Key().Ref()
	}
	return readable(list)
}

// object reads one object of the tree; at is its place in the document.
func (t *tree) object(v any, at, namespace string) (*Object, diag.List) {
	d := candidate{keep: len(t.known) > 0}
	top, ok := v.(map[string]any)
	if ok {
		d.top = top
		d.normalise(namespace)
		d.check()
	} else {
		d.add(diag.Error, diag.FieldTypeInvalid, "", short(v), "an object must be a map with the fields apiVersion, kind, metadata, spec")
	}
	list := t.tell(at, &d)
	if list.Err() != nil {
		if !d.keep || d.spec == nil || !Unchanged(list, t.known) {
			return nil, list
		}
		list = asKnown(list)
	}
	o, err := d.build()
	if err != nil {
		problem := diag.Problem{Severity: diag.Error, Reason: diag.Malformed, Code: diag.Unreadable, Object: d.ref(), Message: err.Error()}
		problem.Position = t.locate(at, problem)
		return nil, append(list, problem)
	}
	return o, list
}

// tell returns the problems of an object with their positions.
func (t *tree) tell(at string, d *candidate) diag.List {
	list := d.finish()
	for i := range list {
		list[i].Object = d.ref()
		list[i].Position = t.locate(at, list[i])
	}
	byPosition(list)
	return readable(list)
}
