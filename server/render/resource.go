package render

import (
	"cmp"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// Resource is a kind in one version, as answers show its objects.
type Resource struct {
	*Statuses
	Kind    *schema.Kind // nil if there are several, in their stored versions
	Version string
}

// VersionOf returns the version in which answers show o.
func (k *Resource) VersionOf(o *schema.Object) string { return cmp.Or(k.Version, o.Kind.Version) }

// JSON returns an object as answers show it, without its status. Do not change it.
func (k *Resource) JSON(o *schema.Object) []byte { return o.JSONIn(k.VersionOf(o)) }

// TypeMeta returns the kind and apiVersion of the resource's objects.
func (k *Resource) TypeMeta() metav1.TypeMeta {
	if k.Kind == nil {
		return metav1.TypeMeta{Kind: "Object", APIVersion: wire.RegistryVersion}
	}
	return metav1.TypeMeta{Kind: k.Kind.Kind, APIVersion: k.Kind.In(k.Version)}
}

// Target returns the object that a URL names. The name, or the name and the
// namespace, are empty in the URL of a collection.
func (k *Resource) Target(r *http.Request) schema.Key {
	return schema.KeyOf(k.Kind, wire.PathParam(r, "namespace"), wire.PathParam(r, "name"))
}

// Scope returns the objects that the URL of a collection names.
func (k *Resource) Scope(r *http.Request) store.Scope {
	return store.Scope{Kind: k.Kind, Namespace: wire.PathParam(r, "namespace")}
}

// Path returns the URL of an object.
func (k *Resource) Path(o *schema.Object) string {
	path := o.Kind.Root(k.VersionOf(o))
	if !o.Kind.Cluster {
		path += "/namespaces/" + o.Meta.Namespace
	}
	return path + "/" + o.Kind.Plural + "/" + o.Meta.Name
}

// New returns a kind in a version. s has the statuses of its objects. A nil kind means
// several kinds.
func New(s *Statuses, kind *schema.Kind, version string) *Resource {
	return &Resource{s, kind, version}
}
