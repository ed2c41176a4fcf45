package objects

import (
	"encoding/json"
	"slices"
	"sync"

	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
)

// builtIns are the kinds that Kubernetes has itself, with their Go types. kubectl and
// client-go write them differently from all other kinds: they send objects in protobuf, and
// changes as strategic merge patches, which merge lists as the tags of the Go types say.
var builtIns = map[string]any{
	schema.KindServiceAccount:     core.ServiceAccount{},
	schema.KindRole:               rbac.Role{},
	schema.KindClusterRole:        rbac.ClusterRole{},
	schema.KindRoleBinding:        rbac.RoleBinding{},
	schema.KindClusterRoleBinding: rbac.ClusterRoleBinding{},
}

func isBuiltIn(kind *schema.Kind) bool { return builtIns[kind.Kind] != nil }

// objectTypesOf returns the media types of objects of a kind in requests.
func objectTypesOf(kind *schema.Kind) []string {
	if isBuiltIn(kind) {
		return append(slices.Clone(wire.ObjectTypes), runtime.ContentTypeProtobuf)
	}
	return wire.ObjectTypes
}

// patchTypesOf returns the media types of patches of a kind.
func patchTypesOf(kind *schema.Kind) []string {
	if isBuiltIn(kind) {
		return append(slices.Clone(patchTypes), string(types.StrategicMergePatchType))
	}
	return patchTypes
}

var builtInCodec = sync.OnceValue(func() *protobuf.Serializer {
	scheme := runtime.NewScheme()
	utilruntime.Must(core.AddToScheme(scheme))
	utilruntime.Must(rbac.AddToScheme(scheme))
	return protobuf.NewSerializer(scheme, scheme)
})

// FromProtobuf returns the JSON of an object of a built-in kind.
func FromProtobuf(body []byte) ([]byte, error) {
	object, kind, err := builtInCodec().Decode(body, nil, nil)
	if err != nil {
		return nil, wire.BadRequest("body: must be an object in the protobuf of Kubernetes: %v", err)
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	return json.Marshal(object)
}

// strategicPatch returns the Patcher of a strategic merge patch of a built-in kind.
func strategicPatch(body []byte, kind *schema.Kind) Patcher {
	return func(doc []byte) ([]byte, *diag.Problem) {
		out, err := strategicpatch.StrategicMergePatch(doc, body, builtIns[kind.Kind])
		if err != nil {
			return nil, misfit("", "", err)
		}
		return out, nil
	}
}
