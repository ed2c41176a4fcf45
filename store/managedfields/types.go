package managedfields

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/pilot-api/pilot-api/schema"
)

// tracker is the library's manager of a kind, with the types that it reads the kind
// by.
type tracker struct {
	*managedfields.FieldManager
	types managedfields.TypeConverter
}

// trackers has one for each kind. The schemas are part of the program, so it panics
// if the library rejects one.
var trackers = sync.OnceValue(func() map[*schema.Kind]tracker {
	out := map[*schema.Kind]tracker{}
	for _, kind := range schema.Kinds() {
		tracker, err := newTracker(kind)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", kind.Kind, err))
		}
		out[kind] = tracker
	}
	return out
})

func newTracker(kind *schema.Kind) (tracker, error) {
	text, err := json.Marshal(kind.ObjectOpenAPI())
	if err != nil {
		return tracker{}, err
	}
	var model spec.Schema
	if err := json.Unmarshal(text, &model); err != nil {
		return tracker{}, err
	}
	types, err := managedfields.NewTypeConverter(map[string]*spec.Schema{kind.Kind: &model}, false)
	if err != nil {
		return tracker{}, err
	}
	gvk := runtimeschema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
	manager, err := managedfields.NewDefaultCRDFieldManager(types, oneVersion{}, oneVersion{}, oneVersion{}, gvk, gvk.GroupVersion(), "", nil)
	return tracker{manager, types}, err
}

// oneVersion implements what the library needs of a scheme, for kinds that have one
// version and no defaults.
type oneVersion struct{}

func (oneVersion) Convert(_, _, _ any) error { return nil }

func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (oneVersion) ConvertFieldLabel(_ runtimeschema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (oneVersion) Default(runtime.Object) {}

func (oneVersion) New(kind runtimeschema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}
