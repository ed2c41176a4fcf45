package schema

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readStored reads what was stored: see Encoded. The object holds on to the
// text.
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

func headOf(apiVersion, kind string) []byte {
	return []byte(beforeGroup + apiVersion + beforeName + kind + beforeMeta)
}

// readWritten is nil for what readStored must look at more closely.
func readWritten(raw []byte) *Object {
	s, ok := read(string(raw))
	defer s.done()
	if !ok || s.nodes[0].what != '{' || s.nodes[0].members != 4 {
		return nil
	}
	version, name, metadata, spec := s.member(0, "apiVersion"), s.member(0, "kind"), s.member(0, "metadata"), s.member(0, "spec")
	if version == 0 || name == 0 || metadata == 0 || spec == 0 || int(s.nodes[spec].end) != len(raw)-1 {
		return nil
	}
	apiVersion, _ := s.of(version)
	kindName, _ := s.of(name)
	kind, known := KindByName(kindName)
	meta, plain := s.meta(metadata)
	if !known || len(kind.private) > 0 || !plain || meta.ResourceVersion != "" || !bytes.HasPrefix(raw, headOf(apiVersion, kindName)) {
		return nil
	}
	return build(kind, meta, raw[s.nodes[spec].start:len(raw)-1:len(raw)-1], raw)
}
