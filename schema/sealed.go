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

// An object of a kind with private fields has two texts: the stored one, and the
// shown one, with marks in place of those fields (docs/decisions/021-secrets.md).

// sealed is a spec as it is stored, if that may not be shown. It is a pointer, so
// that printing a surrounding value with any verb shows an address.
type sealed *string

// seal builds an object that does not show its private fields, also not in
// kubectl's annotation.
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

// marked returns a spec with marks, and an empty one for an invalid spec.
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
			key = string(text) // It is rejected elsewhere; until then it is not shown.
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

// marksIn returns the text of a whole object with marks, or "" if that fails.
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
	return string(out) + "\n" // as kubectl writes it
}

// written returns the spec as it is stored.
func (o *Object) written() json.RawMessage {
	if o.sealed != nil {
		return json.RawMessage(*o.sealed)
	}
	return o.spec
}

// Written returns the whole object with its private fields: for the store, and for
// a client that sends it there.
func (o *Object) Written() []byte {
	text := o.JSON()
	if o.sealed == nil {
		return text
	}
	// The spec comes last, as marked encoded it.
	head := text[:len(text)-len(o.spec)-len("}")]
	return slices.Concat(head, o.written(), []byte("}"))
}

// Keeping returns the object with its marks replaced by the private fields of the
// stored object that it replaces, nil for none. A mark that matches no stored field
// is a problem, and so is a result that does not fit together.
func (o *Object) Keeping(stored *Object) (*Object, diag.List) {
	if o.sealed == nil {
		return o, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(o.written(), &fields) != nil {
		return o, nil // rejected elsewhere
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

// behind returns the private field that a mark stands for.
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

// Format prints the key and revision of the object: no verb shows its contents.
func (o *Object) Format(f fmt.State, _ rune) {
	if o == nil {
		_, _ = fmt.Fprint(f, "no object")
		return
	}
	_, _ = fmt.Fprintf(f, "%s at revision %d", o.Key(), o.Revision())
}
