package server

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
)

// verbs are what every kind can do, in the words of Kubernetes.
var verbs = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// coreVersions answers /api, where Kubernetes has its core group. Nothing of it
// is here but "kind: List", which kubectl looks for in it, and the word that a
// namespace exists.
func (s *Server) coreVersions(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, r, metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"},
		Versions: []string{"v1"}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	})
}

// coreResources answers /api/v1. Clients refuse an empty list; List is a kind
// without verbs, so nobody sends one.
func (s *Server) coreResources(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, r, metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: "v1", APIResources: []metav1.APIResource{{
			Name: "lists", SingularName: "list", Kind: "List", Namespaced: true, Verbs: metav1.Verbs{},
		}},
	})
}

// namespace answers /api/v1/namespaces/{namespace}, which kubectl asks for when
// an object is not there, to say which of the two is missing. Namespaces need not
// be made here: there is every one that can be named.
func (s *Server) namespace(w http.ResponseWriter, r *http.Request) error {
	name := pathParam(r, "namespace")
	if schema.CheckNamespace(name) != nil {
		return apierrors.NewNotFound(metav1.Unversioned.WithResource("namespaces").GroupResource(), name)
	}
	return writeJSON(w, r, struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Status            map[string]string `json:"status"`
	}{metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}, metav1.ObjectMeta{Name: name}, map[string]string{"phase": "Active"}})
}

// groups answers /apis.
func (s *Server) groups(w http.ResponseWriter, r *http.Request) error {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, kind := range schema.Kinds() {
		if n := len(list.Groups); n == 0 || list.Groups[n-1].Name != kind.Group {
			list.Groups = append(list.Groups, apiGroup(kind.Group))
		}
	}
	return writeJSON(w, r, list)
}

// group answers /apis/{group}.
func (s *Server) group(w http.ResponseWriter, r *http.Request) error {
	g := apiGroup(chi.URLParam(r, "group"))
	if len(g.Versions) == 0 {
		s.noSuchPath(w, r)
		return nil
	}
	g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return writeJSON(w, r, g)
}

func apiGroup(name string) metav1.APIGroup {
	g := metav1.APIGroup{Name: name}
	for _, kind := range schema.Kinds() {
		v := metav1.GroupVersionForDiscovery{GroupVersion: kind.APIVersion(), Version: kind.Version}
		if kind.Group == name && !slices.Contains(g.Versions, v) {
			g.Versions = append(g.Versions, v)
		}
	}
	if len(g.Versions) > 0 {
		g.PreferredVersion = g.Versions[0]
	}
	return g
}

// resources answers /apis/{group}/{version}.
func (s *Server) resources(w http.ResponseWriter, r *http.Request) error {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: groupVersion(r),
	}
	for _, kind := range kindsOf(list.GroupVersion) {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: kind.Plural, SingularName: kind.Singular, Kind: kind.Kind,
			Namespaced: true, ShortNames: kind.ShortNames, Verbs: verbs,
			Categories: []string{"all"}, // Of kubectl get all.
		})
	}
	if len(list.APIResources) == 0 {
		s.noSuchPath(w, r)
		return nil
	}
	return writeJSON(w, r, list)
}

func groupVersion(r *http.Request) string {
	return chi.URLParam(r, "group") + "/" + chi.URLParam(r, "version")
}

func kindsOf(groupVersion string) []*schema.Kind {
	var out []*schema.Kind
	for _, kind := range schema.Kinds() {
		if kind.APIVersion() == groupVersion {
			out = append(out, kind)
		}
	}
	return out
}

// groupVersions are those of the kinds, in their order.
func groupVersions() []string {
	var out []string
	for _, kind := range schema.Kinds() {
		out = append(out, kind.APIVersion())
	}
	return slices.Compact(out)
}
