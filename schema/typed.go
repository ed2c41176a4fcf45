package schema

import (
	"encoding/json"
	"sync"
	"weak"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// specType is the Go type of a kind's specs.
type specType struct {
	// decode decodes a spec strictly from the written form.
	decode func(spec json.RawMessage) (any, error)
	// weakly returns a function that returns the spec while it is in use elsewhere,
	// and nil afterwards.
	weakly func(spec any) func() any
}

// typedSpec is a decoded spec that is kept only while it is in use: it is several
// times as large as its text, and most callers need it once.
type typedSpec struct {
	mu    sync.Mutex
	known func() any // nil before the first use
	err   error
	made  func() any // the value last passed to Remember; nil before
}

// typedAs returns the typedSpec of a spec that was just decoded.
func typedAs(kind *Kind, spec any) *typedSpec { return &typedSpec{known: kind.spec.weakly(spec)} }

// get returns the spec, and decodes the text only if the spec is not in use.
func (t *typedSpec) get(kind *Kind, text json.RawMessage) (any, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return nil, t.err
	}
	if t.known != nil {
		if spec := t.known(); spec != nil {
			return spec, nil
		}
	}
	spec, err := kind.spec.decode(text)
	if err != nil {
		t.err = err
		return nil, err
	}
	t.known = kind.spec.weakly(spec)
	return spec, nil
}

// Remember lets Recalled return a value derived from an object alone, while the
// value is in use. The value for the next version of the object replaces it.
func Remember[T any](o *Object, made *T) {
	o.typed.mu.Lock()
	defer o.typed.mu.Unlock()
	o.typed.made = weakly[T](made)
}

// Recalled returns the value passed to Remember for the object, or for another one
// with the same spec; nil if there is none.
func (o *Object) Recalled() any {
	o.typed.mu.Lock()
	defer o.typed.mu.Unlock()
	if o.typed.made == nil {
		return nil
	}
	return o.typed.made()
}

// inJSON is the specType of this project's own Go types.
func inJSON[T any]() specType {
	return specType{decodeJSON[T], weakly[T]}
}

// inProto is the specType of messages of istio.io/api.
func inProto[T any, M interface {
	*T
	proto.Message
	json.Unmarshaler
}]() specType {
	return specType{decodeProto[T, M], weakly[T]}
}

// weakly expects a *T.
func weakly[T any](value any) func() any {
	p := weak.Make(value.(*T))
	return func() any {
		if value := p.Value(); value != nil {
			return value
		}
		return nil
	}
}

func decodeJSON[T any](spec json.RawMessage) (any, error) {
	out := new(T)
	if err := json.Unmarshal(spec, out); err != nil {
		return nil, err
	}
	return out, nil
}

func decodeProto[T any, M interface {
	*T
	proto.Message
	json.Unmarshaler
}](spec json.RawMessage) (any, error) {
	out := M(new(T))
	if protojson.Unmarshal(spec, out) != nil {
		// The message's own decoder, which is Istio's, also accepts durations in
		// Go's form (1m), and takes several times as long.
		out = M(new(T))
		if err := out.UnmarshalJSON(spec); err != nil {
			return nil, err
		}
	}
	canonical(out)
	return (*T)(out), nil
}
