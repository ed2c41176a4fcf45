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
	// decode makes a spec by strict decoding of the written spelling.
	decode func(spec json.RawMessage) (any, error)
	// weakly has a spec as long as others have it, and nil from then on.
	weakly func(spec any) func() any
}

// typedSpec is what a spec says. A decoded one is several times as long as its
// text, and most who look have enough of one look.
type typedSpec struct {
	mu    sync.Mutex
	known func() any // nil before the first use
	err   error
	made  func() any // of the object that was asked about last, nil before
}

// typedAs is one that was decoded just now.
func typedAs(kind *Kind, spec any) *typedSpec { return &typedSpec{known: kind.spec.weakly(spec)} }

// get decodes the text unless somebody has what it says.
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

// Remember has Recalled know what was made of an object by itself, for as long as
// somebody has that. What is known of one version of it is forgotten with the next.
func Remember[T any](o *Object, made *T) {
	o.typed.mu.Lock()
	defer o.typed.mu.Unlock()
	o.typed.made = weakly[T](made)
}

// Recalled is what Remember was told of the object, or of another one with the same
// spec; nil for nothing.
func (o *Object) Recalled() any {
	o.typed.mu.Lock()
	defer o.typed.mu.Unlock()
	if o.typed.made == nil {
		return nil
	}
	return o.typed.made()
}

// inJSON are Go types of our own.
func inJSON[T any]() specType {
	return specType{decodeJSON[T], weakly[T]}
}

// inProto are messages of istio.io/api.
func inProto[T any, M interface {
	*T
	proto.Message
	json.Unmarshaler
}]() specType {
	return specType{decodeProto[T, M], weakly[T]}
}

// weakly is for a *T.
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
		// The message's own way, which is Istio's, also reads durations in
		// Go's form (1m), and takes several times as long.
		out = M(new(T))
		if err := out.UnmarshalJSON(spec); err != nil {
			return nil, err
		}
	}
	canonical(out)
	return (*T)(out), nil
}
