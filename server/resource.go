package server

import (
	"cmp"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// shown is a kind in one version, as answers show its objects.
type shown struct {
	*statuses
	kind    *schema.Kind // nil if there are several, in their stored versions
	version string
}

// versionOf returns the version in which o is answered.
func (k *shown) versionOf(o *schema.Object) string { return cmp.Or(k.version, o.Kind.Version) }

// json returns an object, without its status, as it is answered. Do not change it.
func (k *shown) json(o *schema.Object) []byte { return o.JSONIn(k.versionOf(o)) }

// typeMeta returns the kind and apiVersion of the resource's objects.
func (k *shown) typeMeta() metav1.TypeMeta {
	if k.kind == nil {
		return metav1.TypeMeta{Kind: "Object", APIVersion: registryVersion}
	}
	return metav1.TypeMeta{Kind: k.kind.Kind, APIVersion: k.kind.In(k.version)}
}

// target returns the object that a URL names. The name, or the name and the
// namespace, are empty in the URL of a collection.
func (k *shown) target(r *http.Request) schema.Key {
	return schema.Key{Kind: k.kind.Kind, Namespace: wire.PathParam(r, "namespace"), Name: wire.PathParam(r, "name")}
}

func (k *shown) scope(r *http.Request) store.Scope {
	return store.Scope{Kind: k.kind, Namespace: wire.PathParam(r, "namespace")}
}

// path returns the URL of an object.
func (k *shown) path(o *schema.Object) string {
	return "/apis/" + o.Kind.In(k.versionOf(o)) + "/namespaces/" + o.Meta.Namespace + "/" + o.Kind.Plural + "/" + o.Meta.Name
}

// newShown returns a kind in a version, whose statuses are in s. A nil kind means several.
func newShown(s *statuses, kind *schema.Kind, version string) *shown { return &shown{s, kind, version} }
