package server

import (
	"net/http"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/actions"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
)

// verbs are the verbs that every kind has, and readVerbs those of an object's
// status.
var verbs = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

var readVerbs = metav1.Verbs{"get"}

// coreVersions answers /api, where Kubernetes has its core group. This server has
// only three things of that group: "kind: List", which kubectl looks for, the
// existence of namespaces, and ServiceAccounts.
func (s *Server) coreVersions(w http.ResponseWriter, r *http.Request) error {
	return writeGroups(w, r, []metav1.APIResourceList{coreList()}, metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"},
		Versions: []string{"v1"}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	})
}

// coreResources answers /api/v1. Clients refuse an empty list, so it has List, a
// kind without verbs, which no client sends.
func (s *Server) coreResources(w http.ResponseWriter, r *http.Request) error {
	return answer.WriteJSON(w, r, coreList())
}

var coreList = sync.OnceValue(func() metav1.APIResourceList {
	list := resourceList(coreVersion, metav1.APIResource{
		Name: "lists", SingularName: "list", Kind: "List", Namespaced: true, Verbs: metav1.Verbs{},
	})
	for _, kind := range schema.Kinds() {
		if kind.Group == "" {
			list.APIResources = append(list.APIResources, resourcesOf(kind)...)
		}
	}
	list.APIResources = append(list.APIResources, metav1.APIResource{
		Name: "serviceaccounts/token", Group: whoGroup, Version: "v1", Kind: "TokenRequest", Namespaced: true, Verbs: metav1.Verbs{"create"},
	})
	return list
})

// coreVersion is the version of the core group.
const coreVersion = "v1"

// namespace answers /api/v1/namespaces/{namespace}. If an object is not found,
// kubectl asks for its namespace to say which of the two is missing. Namespaces are
// not created here: every valid name exists.
func (s *Server) namespace(w http.ResponseWriter, r *http.Request) error {
	name := wire.PathParam(r, "namespace")
	if schema.CheckNamespace(name) != nil {
		return apierrors.NewNotFound(metav1.Unversioned.WithResource("namespaces").GroupResource(), name)
	}
	return answer.WriteJSON(w, r, struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Status            map[string]string `json:"status"`
	}{metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}, metav1.ObjectMeta{Name: name}, map[string]string{"phase": "Active"}})
}

// notInCore maps paths of Kubernetes' core group that people reach with kubectl to
// a text that says where this server has that information.
var notInCore = map[string]string{
	"/api/v1/namespaces":                    noNamespaces,
	"/api/v1/events":                        noEvents,
	"/api/v1/namespaces/{namespace}/events": noEvents,
}

const (
	noNamespaces = "namespaces cannot be created or listed: every namespace with a valid name exists"
	noEvents     = "the server keeps no events: see the status of an object, its history (istioctl history), and /debug/problems"
)

func notHere(instead string) error {
	return wire.Failure(http.StatusNotFound, metav1.StatusReasonNotFound, "%s", instead)
}

// groups answers /apis.
func (s *Server) groups(w http.ResponseWriter, r *http.Request) error {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, there := range catalogue() {
		name, _, _ := strings.Cut(there.GroupVersion, "/")
		if n := len(list.Groups); n == 0 || list.Groups[n-1].Name != name {
			list.Groups = append(list.Groups, apiGroup(name))
		}
	}
	return writeGroups(w, r, catalogue(), list)
}

// group answers /apis/{group}.
func (s *Server) group(w http.ResponseWriter, r *http.Request) error {
	g := apiGroup(chi.URLParam(r, "group"))
	if len(g.Versions) == 0 {
		s.noSuchPath(w, r)
		return nil
	}
	g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return answer.WriteJSON(w, r, g)
}

func apiGroup(name string) metav1.APIGroup {
	g := metav1.APIGroup{Name: name}
	for _, there := range catalogue() {
		if group, version, _ := strings.Cut(there.GroupVersion, "/"); group == name {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: there.GroupVersion, Version: version})
		}
	}
	if len(g.Versions) > 0 {
		g.PreferredVersion = g.Versions[0]
	}
	return g
}

// resources answers /apis/{group}/{version}.
func (s *Server) resources(w http.ResponseWriter, r *http.Request) error {
	for _, there := range catalogue() {
		if there.GroupVersion == groupVersion(r) {
			return answer.WriteJSON(w, r, there)
		}
	}
	s.noSuchPath(w, r)
	return nil
}

func groupVersion(r *http.Request) string {
	return chi.URLParam(r, "group") + "/" + chi.URLParam(r, "version")
}

// catalogue returns all resources below /apis, by group and version, the preferred
// versions first.
var catalogue = sync.OnceValue(func() []metav1.APIResourceList {
	byVersion := map[string]*metav1.APIResourceList{}
	var order []string
	for _, kind := range schema.Kinds() {
		if kind.Group == "" {
			continue // It is below /api.
		}
		for _, version := range kind.Versions() {
			in := kind.In(version)
			if byVersion[in] == nil {
				list := resourceList(in)
				byVersion[in], order = &list, append(order, in)
			}
			byVersion[in].APIResources = append(byVersion[in].APIResources, resourcesOf(kind)...)
		}
	}
	byVersion[wire.RegistryVersion].APIResources = append(byVersion[wire.RegistryVersion].APIResources, actions.Resources...)
	out := make([]metav1.APIResourceList, len(order), len(order)+1)
	for i, in := range order {
		out[i] = *byVersion[in]
	}
	return append(out, whoReviews, reviews)
})

// everything returns all resources, with those of the core group.
func everything() []metav1.APIResourceList {
	return append([]metav1.APIResourceList{coreList()}, catalogue()...)
}

// resourcesOf returns the resources of a kind: its objects and their statuses.
func resourcesOf(kind *schema.Kind) []metav1.APIResource {
	if kind.Flat {
		return []metav1.APIResource{{
			Name: kind.Plural, SingularName: kind.Singular, Kind: kind.Kind,
			Namespaced: !kind.Cluster, ShortNames: kind.ShortNames, Verbs: verbs,
		}}
	}
	return []metav1.APIResource{{
		Name: kind.Plural, SingularName: kind.Singular, Kind: kind.Kind,
		Namespaced: true, ShortNames: kind.ShortNames, Verbs: verbs,
		Categories: []string{"all"}, // of kubectl get all
	}, {
		Name: kind.Plural + "/status", Kind: kind.Kind, Namespaced: true, Verbs: readVerbs,
	}}
}

func resourceList(groupVersion string, resources ...metav1.APIResource) metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: groupVersion, APIResources: resources,
	}
}
