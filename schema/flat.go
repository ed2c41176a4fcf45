package schema

import (
	"encoding/json"

	"github.com/pilot-api/pilot-api/diag"
)

// The fields of a Flat kind are in its texts beside the metadata, and in this package they
// are a spec, like those of all other kinds. This file has the conversions.

// ofAllKinds are the members of an object that are not of its spec.
var ofAllKinds = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "status": true}

// flatKind returns the kind that the members of an object name, if it is Flat, or nil.
func flatKind(members map[string]json.RawMessage) *Kind {
	var name string
	if json.Unmarshal(members["kind"], &name) != nil {
		return nil
	}
	if kind, ok := KindByName(name); ok && kind.Flat {
		return kind
	}
	return nil
}

// gathered returns an object of a Flat kind with its fields as a spec, in the order that
// assemble writes, or nil if it cannot be encoded.
func gathered(members map[string]json.RawMessage) []byte {
	spec := map[string]json.RawMessage{}
	for name, value := range members {
		if !ofAllKinds[name] {
			spec[name] = value
		}
	}
	text, err := json.Marshal(struct {
		APIVersion json.RawMessage `json:"apiVersion"`
		Kind       json.RawMessage `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
		Spec       any             `json:"spec"`
	}{members["apiVersion"], members["kind"], members["metadata"], spec})
	if err != nil {
		return nil
	}
	return text
}

// GatherJSON returns the JSON of an object with the fields of a Flat kind as a spec. It
// returns any other text unchanged.
func GatherJSON(text []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || flatKind(members) == nil {
		return text
	}
	if out := gathered(members); out != nil {
		return out
	}
	return text
}

// gather makes the fields of an object of a Flat kind its spec.
func (d *candidate) gather() {
	name, _ := d.top["kind"].(string)
	kind, ok := KindByName(name)
	if !ok || !kind.Flat {
		return
	}
	spec := map[string]any{}
	for name, value := range d.top {
		if !ofAllKinds[name] {
			spec[name] = value
			delete(d.top, name)
		}
	}
	d.top["spec"] = spec
}

// spread is the inverse of gather for the fields of a part.
func (k *Kind) spread(top map[string]any) {
	spec, ok := top["spec"].(map[string]any)
	if !k.Flat || !ok {
		return
	}
	delete(top, "spec")
	for name, value := range spec {
		top[name] = value
	}
}

// spreadFields names the fields in problems as they stand in the text.
func (k *Kind) spreadFields(list diag.List) {
	if k == nil || !k.Flat {
		return
	}
	for i, p := range list {
		if rest, inSpec := cutSpec(p.Field); inSpec {
			list[i].Field = rest
		}
	}
}

func cutSpec(field string) (rest string, ok bool) {
	const prefix = "spec."
	if len(field) > len(prefix) && field[:len(prefix)] == prefix {
		return field[len(prefix):], true
	}
	return field, false
}
