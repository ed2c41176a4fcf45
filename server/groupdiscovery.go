package server

import (
	"net/http"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
)

// writeGroups answers with all resources in one document (aggregated discovery) if
// the client accepts that, and with plain otherwise.
func writeGroups(w http.ResponseWriter, r *http.Request, lists []metav1.APIResourceList, plain any) error {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML, wire.Discovery)
	if err != nil {
		return err
	}
	if f == wire.Discovery {
		plain = groupDiscovery(lists)
	}
	return answer.WriteValue(w, http.StatusOK, f, plain)
}

// groupDiscovery converts lists of resources to aggregated discovery.
func groupDiscovery(lists []metav1.APIResourceList) apidiscovery.APIGroupDiscoveryList {
	out := apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscovery.SchemeGroupVersion.String()},
	}
	for _, list := range lists {
		group, version, grouped := strings.Cut(list.GroupVersion, "/")
		if !grouped {
			group, version = "", list.GroupVersion
		}
		if n := len(out.Items); n == 0 || out.Items[n-1].Name != group {
			out.Items = append(out.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group}})
		}
		last := &out.Items[len(out.Items)-1]
		last.Versions = append(last.Versions, apidiscovery.APIVersionDiscovery{
			Version: version, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
			Resources: resourceDiscovery(group, version, list.APIResources),
		})
	}
	return out
}

// resourceDiscovery converts resources. A subresource must directly follow its
// resource or another subresource of it.
func resourceDiscovery(group, version string, resources []metav1.APIResource) []apidiscovery.APIResourceDiscovery {
	var out []apidiscovery.APIResourceDiscovery
	for _, r := range resources {
		kind := &metav1.GroupVersionKind{Group: group, Version: version, Kind: r.Kind}
		if _, sub, ok := strings.Cut(r.Name, "/"); ok {
			of := &out[len(out)-1]
			of.Subresources = append(of.Subresources, apidiscovery.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind, Verbs: r.Verbs})
			continue
		}
		scope := apidiscovery.ScopeCluster
		if r.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		out = append(out, apidiscovery.APIResourceDiscovery{
			Resource: r.Name, ResponseKind: kind, Scope: scope, SingularResource: r.SingularName,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	return out
}
