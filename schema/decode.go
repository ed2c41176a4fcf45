package schema

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
)

// DefaultNamespace is where an object goes when nobody says otherwise.
const DefaultNamespace = "default"

// CheckNamespace tells why a text cannot be the name of a namespace.
func CheckNamespace(name string) error {
	if rule := formats["dns-label"]; !rule.ok(name) {
		return fmt.Errorf("the namespace %q must be %s", name, rule.want)
	}
	return nil
}

// Options for Decode.
type Options struct {
	// File is named in the positions of problems; "" for a request body.
	File string
	// Namespace is given to objects whose metadata names none; "" means
	// DefaultNamespace.
	Namespace string
	// Counted says that the text has no more values than it may: nobody wrote it,
	// and who made it has seen to that (Outgrown).
	Counted bool
	// Known are the Violations of the stored object that the text is to replace.
	// If the text breaks no other rules, they are warnings.
	Known diag.List
}

// Decode reads exactly one object from a YAML or JSON text and validates it:
// syntax, structure, meaning. A text that begins with { may be either. The object is
// nil when the list holds an error; warnings may come with an object. An empty
// text, or more than one document, is an error. Names in the proto spelling
// (simple_cb) are read and written back in lower camel case (simpleCb); a
// status, which clients send back, is dropped.
func Decode(text []byte, opts Options) (*Object, diag.List) {
	if o, warnings := decodeWritten(text, opts); o != nil {
		return o, warnings
	}
	return decodeAny(text, opts)
}

// decodeAny reads whatever can be read, and says what is wrong with the rest.
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

// Validate checks an object that was built by hand or by a patch, as strictly
// as Decode does. The proto spelling is not read here: the object is what is
// written. An object that Decode made passes at once: its warnings are known to
// whoever called Decode.
func Validate(o *Object) diag.List {
	if o.decoded == o || o.isWritten() {
		return nil
	}
	return o.complaints()
}

// complaints is all that is wrong with an object.
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
	d.spell(false)
	d.check()
	if o.Meta.Namespace == "" {
		d.required("metadata.namespace", "must be given")
	}
	list = d.finish()
	for i := range list {
		list[i].Object = o.Key().Ref()
	}
	return readable(list)
}

// object reads one object of the tree; at is where in the document it is.
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

// tell is what was found wrong with an object, with its place.
func (t *tree) tell(at string, d *candidate) diag.List {
	list := d.finish()
	for i := range list {
		list[i].Object = d.ref()
		list[i].Position = t.locate(at, list[i])
	}
	byPosition(list)
	return readable(list)
}
