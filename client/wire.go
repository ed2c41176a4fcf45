package client

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
)

// wireObject is an object as the server writes it.
type wireObject struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       json.RawMessage   `json:"spec"`
	Status     json.RawMessage   `json:"status"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *wireObject) UnmarshalJSON(text []byte) error {
	type plain wireObject
	if err := json.Unmarshal(text, (*plain)(w)); err != nil || w.Spec != nil {
		return err
	}
	return json.Unmarshal(schema.GatherJSON(text), (*plain)(w))
}

// object decodes an object of the expected kind. It checks only the kind, because the
// server has validated what it stored.
func (w wireObject) object(kind *schema.Kind) (*schema.Object, error) {
	if w.Kind != kind.Kind || w.APIVersion != kind.APIVersion() {
		return nil, fmt.Errorf("the server answered with %s %q, want %s %q", w.APIVersion, w.Kind, kind.APIVersion(), kind.Kind)
	}
	return schema.New(kind, w.Metadata, w.Spec)
}

// known decodes an object of whatever kind it states.
func (w wireObject) known() (*schema.Object, error) {
	kind, ok := schema.KindByName(w.Kind)
	if !ok {
		return nil, fmt.Errorf("the server answered with a %q, a kind that is not known here", w.Kind)
	}
	return w.object(kind)
}

// decodeObject decodes an object of a kind, or of any kind if it is nil.
func decodeObject(kind *schema.Kind, body []byte) (*schema.Object, error) {
	s, err := decodeWithStatus(kind, body)
	return s.Object, err
}

func decodeWithStatus(kind *schema.Kind, body []byte) (ObjectWithStatus, error) {
	var w wireObject
	if err := json.Unmarshal(body, &w); err != nil {
		return ObjectWithStatus{}, fmt.Errorf("decode the server's answer: %w", err)
	}
	if kind == nil {
		o, err := w.known()
		return ObjectWithStatus{o, w.Status}, err
	}
	o, err := w.object(kind)
	return ObjectWithStatus{o, w.Status}, err
}

func remaining(meta metav1.ListMeta) int {
	switch {
	case meta.Continue == "":
		return 0
	case meta.RemainingItemCount == nil || *meta.RemainingItemCount <= 0:
		return -1
	}
	return int(*meta.RemainingItemCount)
}
