package server

import (
	"cmp"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// resource answers the URLs of one kind in one version.
type resource struct {
	*Server
	kind    *schema.Kind // nil if there are several, in their stored versions
	version string
}

// versionOf returns the version in which o is answered.
func (k *resource) versionOf(o *schema.Object) string { return cmp.Or(k.version, o.Kind.Version) }

// json returns an object, without its status, as it is answered. Do not change it.
func (k *resource) json(o *schema.Object) []byte { return o.JSONIn(k.versionOf(o)) }

// typeMeta returns the kind and apiVersion of the resource's objects.
func (k *resource) typeMeta() metav1.TypeMeta {
	if k.kind == nil {
		return metav1.TypeMeta{Kind: "Object", APIVersion: registryVersion}
	}
	return metav1.TypeMeta{Kind: k.kind.Kind, APIVersion: k.kind.In(k.version)}
}

// target returns the object that a URL names. The name, or the name and the
// namespace, are empty in the URL of a collection.
func (k *resource) target(r *http.Request) schema.Key {
	return schema.Key{Kind: k.kind.Kind, Namespace: wire.PathParam(r, "namespace"), Name: wire.PathParam(r, "name")}
}

func (k *resource) scope(r *http.Request) store.Scope {
	return store.Scope{Kind: k.kind, Namespace: wire.PathParam(r, "namespace")}
}

// listOrWatch answers the one URL of lists and watches. Only lists have a deadline.
func (k *resource) listOrWatch(w http.ResponseWriter, r *http.Request) {
	watch, err := wire.BoolParam(queryOf(r), "watch")
	switch {
	case err != nil:
		k.fail(w, r, err)
	case watch && r.Method == http.MethodHead:
		k.fail(w, r, errNoHead())
	case watch:
		k.handle(k.watch)(w, r)
	default:
		k.bounded(k.list)(w, r)
	}
}

func errNoHead() error {
	return wire.BadRequest("watch: all of a watch is in its body, which HEAD does not want; send GET")
}

// path returns the URL of an object.
func (k *resource) path(o *schema.Object) string {
	return "/apis/" + o.Kind.In(k.versionOf(o)) + "/namespaces/" + o.Meta.Namespace + "/" + o.Kind.Plural + "/" + o.Meta.Name
}
