package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
)

// An object of a kind with private fields has two texts: what is stored, and what
// is shown, with marks in place of those fields (docs/decisions/021-secrets.md).

// sealed is a spec as it is stored, where that may not be shown. Whoever prints
// what is around a pointer to a text, by whatever verb, sees an address.
type sealed *string

// seal builds an object that shows neither its private fields nor what kubectl has
// noted of them.
func (k *Kind) seal(meta metav1.ObjectMeta, spec json.RawMessage) (*Object, error) {
	owner := meta.Namespace + "/" + meta.Name
	if text, ok := meta.Annotations[lastApplied]; ok {
		meta.Annotations = maps.Clone(meta.Annotations)
		if shown := k.marksIn(text, owner); shown != "" {
			meta.Annotations[lastApplied] = shown
		} else {
			delete(meta.Annotations, lastApplied)
		}
	}
	shown := k.marked(spec, owner)
	o, err := write(k, meta, func(out []byte) []byte { return append(out, shown...) }, len(shown))
	if err != nil {
		return nil, err
	}
	text := string(spec)
	o.sealed = &text
	return o, nil
}

// marked is a spec with marks; an empty one in place of what is none.
func (k *Kind) marked(spec json.RawMessage, owner string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(spec, &fields) != nil || fields == nil {
		return json.RawMessage("{}")
	}
	for _, name := range k.private {
		text, given := fields[name]
		if !given {
			continue
		}
		var key string
		if json.Unmarshal(text, &key) != nil {
			key = string(text) // It is refused by others; until then nobody sees it.
		}
		if credential.IsMark(key) {
			continue
		}
		fields[name], _ = json.Marshal(credential.Mark(owner, key))
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}

// marksIn is the text of a whole object with marks, "" when that cannot be made.
func (k *Kind) marksIn(text, owner string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &fields) != nil {
		return ""
	}
	if spec, given := fields["spec"]; given {
		fields["spec"] = k.marked(spec, owner)
	}
	out, err := json.Marshal(fields)
	if err != nil || credential.HoldsKey(string(out)) {
		return ""
	}
	return string(out) + "\n" // As kubectl writes it.
}

// written is the spec as it is stored.
func (o *Object) written() json.RawMessage {
	if o.sealed != nil {
		return json.RawMessage(*o.sealed)
	}
	return o.spec
}

// Written is the whole object with what may not be shown: for the store, and for
// who sends it there.
func (o *Object) Written() []byte {
	if o.sealed == nil {
		return o.raw
	}
	// The spec stands last, as marked has encoded it.
	head := o.raw[:len(o.raw)-len(o.spec)-len("}")]
	return slices.Concat(head, o.written(), []byte("}"))
}

// Keeping is the object with what its marks stand for: the private fields of the
// one that it takes the place of, nil for none. A mark that stands for nothing
// there is a problem, and so is what does not fit together then.
func (o *Object) Keeping(stored *Object) (*Object, diag.List) {
	if o.sealed == nil {
		return o, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(o.written(), &fields) != nil {
		return o, nil // Refused by others.
	}
	var p problems
	kept := false
	for _, name := range o.Kind.private {
		var mark string
		if json.Unmarshal(fields[name], &mark) != nil || !credential.IsMark(mark) {
			continue
		}
		text, ok := stored.behind(name, mark)
		if !ok {
			p.invalid("spec."+name, "is the mark of a key that is not the stored one: give the key itself, or the mark that the stored object shows")
			continue
		}
		fields[name], kept = text, true
	}
	if !kept || len(p.list) > 0 {
		return o, owned(p.list, o)
	}
	spec, err := json.Marshal(fields)
	if err != nil {
		return nil, owned(diag.List{{Severity: diag.Error, Reason: diag.Malformed, Code: diag.Unreadable, Field: "spec", Message: "cannot be written"}}, o)
	}
	whole, err := New(o.Kind, o.Meta, spec)
	if err != nil {
		return nil, owned(diag.List{{Severity: diag.Error, Reason: diag.Malformed, Code: diag.Unreadable, Message: err.Error()}}, o)
	}
	return whole, Validate(whole).Errors()
}

// behind is the private field that a mark stands for.
func (o *Object) behind(field, mark string) (json.RawMessage, bool) {
	if o == nil || o.sealed == nil {
		return nil, false
	}
	var shown, real map[string]json.RawMessage
	var theirs string
	if json.Unmarshal(o.spec, &shown) != nil || json.Unmarshal(o.written(), &real) != nil || json.Unmarshal(shown[field], &theirs) != nil {
		return nil, false
	}
	return real[field], theirs == mark
}

func owned(list diag.List, o *Object) diag.List {
	for i := range list {
		list[i].Object = o.Key().Ref()
	}
	return list
}

// Format prints what object it is: no verb shows what is in it.
func (o *Object) Format(f fmt.State, _ rune) {
	if o == nil {
		_, _ = fmt.Fprint(f, "no object")
		return
	}
	_, _ = fmt.Fprintf(f, "%s at revision %d", o.Key(), o.Revision())
}
