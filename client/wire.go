package client

import (
	"cmp"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
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

// object decodes an object of the expected kind. It checks only the kind, the namespace and
// the name, because the server has validated what it stored. Names are also parts of files,
// of command lines and of URLs, so those of another server must not be trusted.
func (w wireObject) object(kind *schema.Kind) (*schema.Object, error) {
	if w.Kind != kind.Kind || w.APIVersion != kind.APIVersion() {
		return nil, fmt.Errorf("the server answered with %s %q, want %s %q", w.APIVersion, w.Kind, kind.APIVersion(), kind.Kind)
	}
	if err := schema.CheckNames(kind, w.Metadata.Namespace, w.Metadata.Name); err != nil {
		return nil, fmt.Errorf("the server answered with an object that cannot exist: %w", err)
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

// keyed decodes the object of a key.
func (w wireObject) keyed(key schema.Key) (*schema.Object, error) {
	kind, err := kindOf(key)
	if err != nil {
		return nil, err
	}
	o, err := w.object(kind)
	if err != nil {
		return nil, err
	}
	return o, within(scopeOf(kind, key), o)
}

// scopeOf returns the scope of one object. A name that is still to be made is "".
func scopeOf(kind *schema.Kind, key schema.Key) store.Scope {
	return store.Scope{Kind: kind, Namespace: key.Namespace, Name: key.Name}
}

// within returns an error if an object of an answer is not in the scope that was asked for.
func within(scope store.Scope, o *schema.Object) error {
	if o.Kind.Cluster {
		scope.Namespace = "" // The caller may have given any.
	}
	if scope.Contains(o.Key()) {
		return nil
	}
	asked := cmp.Or(scope.Name, "any name")
	if scope.Namespace != "" {
		asked += " in namespace " + scope.Namespace
	}
	return fmt.Errorf("the server answered with %s, which was not asked for: want %s", o.Key(), asked)
}

// decodeObject decodes an object in a scope.
func decodeObject(scope store.Scope, body []byte) (*schema.Object, error) {
	s, err := decodeWithStatus(scope, body)
	return s.Object, err
}

func decodeWithStatus(scope store.Scope, body []byte) (ObjectWithStatus, error) {
	var w wireObject
	if err := json.Unmarshal(body, &w); err != nil {
		return ObjectWithStatus{}, fmt.Errorf("decode the server's answer: %w", err)
	}
	decode := w.known
	if scope.Kind != nil {
		decode = func() (*schema.Object, error) { return w.object(scope.Kind) }
	}
	o, err := decode()
	if err == nil {
		err = within(scope, o)
	}
	if err != nil {
		return ObjectWithStatus{}, err
	}
	return ObjectWithStatus{o, w.Status}, nil
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
