package managedfields

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/pilot-api/pilot-api/schema"
)

// tracker is the library's manager of a kind in one version, with the types that it
// reads the kind by.
type tracker struct {
	*managedfields.FieldManager
	types managedfields.TypeConverter
}

// kindVersion is a version in which a kind is served.
type kindVersion struct {
	kind    *schema.Kind
	version string
}

// trackers has one for each version of each kind. The schemas are part of the
// program, so it panics if the library rejects one.
var trackers = sync.OnceValue(func() map[kindVersion]tracker {
	out := map[kindVersion]tracker{}
	for _, kind := range schema.Kinds() {
		types, err := typesOf(kind)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", kind.Kind, err))
		}
		for _, version := range kind.Versions() {
			if out[kindVersion{kind, version}], err = newTracker(kind, version, types); err != nil {
				panic(fmt.Sprintf("%s %s: %v", kind.Kind, version, err))
			}
		}
	}
	return out
})

// typesOf returns the types of a kind, which are the same in all of its versions.
func typesOf(kind *schema.Kind) (managedfields.TypeConverter, error) {
	text, err := json.Marshal(kind.ObjectOpenAPI(kind.Versions()...))
	if err != nil {
		return nil, err
	}
	var model spec.Schema
	if err := json.Unmarshal(text, &model); err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(map[string]*spec.Schema{kind.Kind: &model}, false)
}

func newTracker(kind *schema.Kind, version string, types managedfields.TypeConverter) (tracker, error) {
	gvk := runtimeschema.GroupVersionKind{Group: kind.Group, Version: version, Kind: kind.Kind}
	stored := runtimeschema.GroupVersion{Group: kind.Group, Version: kind.Version}
	manager, err := managedfields.NewDefaultCRDFieldManager(types, scheme{}, scheme{}, scheme{}, gvk, stored, "", nil)
	return tracker{manager, types}, err
}

// scheme implements what the library needs of a scheme, for kinds that have the same
// fields in all versions, and no defaults.
type scheme struct{}

func (scheme) Convert(_, _, _ any) error { return nil }

// ConvertToVersion returns the object under the name of another version.
func (scheme) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	from := in.GetObjectKind().GroupVersionKind()
	into, ok := to.KindForGroupVersionKinds([]runtimeschema.GroupVersionKind{from})
	if !ok {
		return nil, fmt.Errorf("%s has no version %s", from.Kind, to.Identifier())
	}
	u, ok := in.(*unstructured.Unstructured)
	if !ok || into == from {
		return in, nil
	}
	out := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	out.SetGroupVersionKind(into)
	return out, nil
}

func (scheme) ConvertFieldLabel(_ runtimeschema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (scheme) Default(runtime.Object) {}

func (scheme) New(kind runtimeschema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}
