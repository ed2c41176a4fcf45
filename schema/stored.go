package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readStored decodes a stored text: see Encoded. The object keeps the text in
// memory. A text that no version of this package wrote is rejected: guessing its
// meaning could put half a rule into force.
func readStored(raw []byte) (*Object, error) {
	if o := readWritten(raw); o != nil {
		return o, nil
	}
	var e struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   metav1.ObjectMeta `json:"metadata"`
		Spec       json.RawMessage   `json:"spec"`
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("it is not UTF-8")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	if kind := flatKind(members); kind != nil {
		if raw = gathered(members); raw == nil {
			return nil, errors.New("it cannot be read")
		}
	}
	if err := checkMembers(raw); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, err
	}
	kind, ok := KindByName(e.Kind)
	if !ok {
		return nil, fmt.Errorf("unknown kind %q", e.Kind)
	}
	if !bytes.HasPrefix(raw, headOf(e.APIVersion, e.Kind)) {
		return nil, fmt.Errorf("%s %s/%s: not in the written form", e.Kind, e.Metadata.Namespace, e.Metadata.Name)
	}
	e.Metadata.ResourceVersion = ""
	return New(kind, e.Metadata, e.Spec)
}

// checkMembers rejects a text whose members are not those of an object. It compares
// names exactly; encoding/json also accepts "Spec" for "spec".
func checkMembers(raw []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	for _, name := range []string{"apiVersion", "kind", "metadata", "spec"} {
		if _, given := members[name]; !given {
			return fmt.Errorf("it has no %s", name)
		}
	}
	if len(members) > 4 {
		return fmt.Errorf("it must have apiVersion, kind, metadata and spec alone, it has %d members", len(members))
	}
	if !bytes.HasPrefix(members["spec"], []byte("{")) {
		return fmt.Errorf("its spec must be a map, found %s", short(members["spec"]))
	}
	if !bytes.HasPrefix(members["metadata"], []byte("{")) {
		return fmt.Errorf("its metadata must be a map, found %s", short(members["metadata"]))
	}
	return nil
}

func headOf(apiVersion, kind string) []byte {
	return []byte(beforeGroup + apiVersion + beforeName + kind + beforeMeta)
}

// readWritten returns nil for a text that readStored must read in the slow way.
func readWritten(raw []byte) *Object {
	s, ok := read(string(raw))
	defer s.done()
	if !ok || s.nodes[0].what != '{' || s.nodes[0].members != 4 {
		return nil
	}
	version, name, metadata, spec := s.member(0, "apiVersion"), s.member(0, "kind"), s.member(0, "metadata"), s.member(0, "spec")
	if version == 0 || name == 0 || metadata == 0 || spec == 0 || s.nodes[spec].what != '{' || int(s.nodes[spec].end) != len(raw)-1 {
		return nil
	}
	apiVersion, _ := s.of(version)
	kindName, _ := s.of(name)
	kind, known := KindByName(kindName)
	meta, plain := s.meta(metadata)
	if !known || len(kind.private) > 0 || apiVersion != kind.APIVersion() || !plain || meta.ResourceVersion != "" || !bytes.HasPrefix(raw, headOf(apiVersion, kindName)) {
		return nil
	}
	return build(kind, meta, raw[s.nodes[spec].start:len(raw)-1:len(raw)-1], raw)
}
