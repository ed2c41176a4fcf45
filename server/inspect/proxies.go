package inspect

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/server/wire"
)

// ProxiesPath lists the proxies. Below it each proxy has its own path.
const ProxiesPath = "/apis/" + wire.RegistryVersion + "/proxies"

// proxy is a proxy and the replica that it is connected to.
type proxy struct {
	discovery.ProxyStatus
	Replica string `json:"replica,omitempty"`
}

var proxyParams = wire.Params("local", "object", "disconnected")

// proxies answers with the proxies connected to any replica, or with local=true to
// this one. With disconnected=true it adds those that were connected and are not now. If
// the caller may list proxies only in some namespaces, the answer has those that state one of
// them, and a Warning header says so. A Warning header names each replica that does not
// answer, whose proxies are missing.
func (h *Handler) proxies(w http.ResponseWriter, r *http.Request) error {
	may := h.namespaces(r.Context(), "list", "proxies")
	all, err := h.proxiesAsked(w, r, "", may)
	if err != nil {
		return err
	}
	if !may("") {
		wire.AddWarning(w, "you see only the proxies of namespaces in which you may list proxies: there may be others")
	}
	return h.opts.LargeReads.WriteJSON(w, r, "proxies", func() (any, error) { return all, nil })
}

// proxy answers with the connections of one node. There are several if it has
// several streams or is known to several replicas.
func (h *Handler) proxy(w http.ResponseWriter, r *http.Request) error {
	node := wire.PathParam(r, "node")
	may := h.namespacesFor(r.Context(), gettingProxy(node, ""))
	all, err := h.proxiesAsked(w, r, node, may)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		if stated, _ := h.opts.Discovery.NamespaceOf(discovery.Node{ID: node}); !may(stated) {
			return h.opts.Guard.Denied(r.Context(), gettingProxy(node, ""))
		}
		return apierrors.NewNotFound(schema.GroupResource{Group: "registry.istio.io", Resource: "proxies"}, node)
	}
	return answer.WriteJSON(w, r, all)
}

// gettingProxy returns the attributes of a question about a proxy.
func gettingProxy(node, subresource string) authz.Attributes {
	right := inspecting("get", "proxies", "")
	right.Subresource, right.Name = subresource, node
	return right
}

// proxiesAsked returns the proxies that a request asks for, of one node or, if node
// is "", of all. Their namespaces are those for which may returns true.
func (h *Handler) proxiesAsked(w http.ResponseWriter, r *http.Request, node string, may func(namespace string) bool) ([]proxy, error) {
	q := wire.Query(r)
	if err := wire.CheckParams(q, proxyParams); err != nil {
		return nil, err
	}
	local, err := h.isLocal(r, q)
	if err != nil {
		return nil, err
	}
	of, err := objectParam(q)
	if err != nil {
		return nil, err
	}
	for _, one := range of {
		if !may(one.Namespace) {
			return nil, h.opts.Guard.Denied(r.Context(), inspecting("list", "proxies", one.Namespace))
		}
	}
	all := []proxy{}
	self := ""
	if h.opts.Peers != nil {
		self = h.opts.Peers.Self()
	}
	known := h.opts.Discovery.Proxies
	if node != "" {
		known = func(of ...diag.Ref) []discovery.ProxyStatus { return h.opts.Discovery.ProxiesCalled(node, of...) }
	}
	disconnected, err := wire.BoolParam(q, "disconnected")
	if err != nil {
		return nil, err
	}
	for _, p := range known(of...) {
		all = append(all, proxy{p, self})
	}
	if disconnected {
		for _, p := range h.opts.Discovery.Disconnected(node, of...) {
			all = append(all, proxy{p, self})
		}
	}
	if !local {
		all = append(all, h.proxiesOfOthers(w, r, node, q)...)
	}
	all = slices.DeleteFunc(all, func(p proxy) bool { return !may(p.Namespace) })
	if disconnected && !local {
		all = onlyWhereConnected(all)
	}
	slices.SortStableFunc(all, func(a, b proxy) int { return strings.Compare(a.Node, b.Node) })
	return all, nil
}

// ProxiesEverywhere returns the proxies of all replicas, with those that were connected and are
// not now, and a text for each replica that does not answer, which is a Warning header too.
func (h *Handler) ProxiesEverywhere(w http.ResponseWriter, r *http.Request) (all []discovery.ProxyStatus, silent []string) {
	found := []proxy{}
	for _, p := range append(h.opts.Discovery.Proxies(), h.opts.Discovery.Disconnected("")...) {
		found = append(found, proxy{ProxyStatus: p})
	}
	others, silent := h.askedOfOthers(w, r, "", url.Values{"disconnected": {"true"}})
	for _, p := range onlyWhereConnected(append(found, others...)) {
		all = append(all, p.ProxyStatus)
	}
	return all, silent
}

// onlyWhereConnected leaves out that a proxy was connected to one replica if it is
// connected to another, or was later.
func onlyWhereConnected(all []proxy) []proxy {
	last := map[string]*proxy{}
	for i := range all {
		p := &all[i]
		if known := last[p.Node]; known == nil || known.LastSeen != nil && (p.LastSeen == nil || p.LastSeen.After(*known.LastSeen)) {
			last[p.Node] = p
		}
	}
	out := make([]proxy, 0, len(all))
	for i := range all {
		if p := &all[i]; p.LastSeen == nil || last[p.Node] == p {
			out = append(out, *p)
		}
	}
	return out
}

// objectParam returns the object whose proxies are asked for, if any.
func objectParam(q url.Values) ([]diag.Ref, error) {
	if !q.Has("object") {
		return nil, nil
	}
	ref, err := refParam("object", q.Get("object"))
	return []diag.Ref{ref}, err
}

// refParam reads KIND/NAMESPACE/NAME.
func refParam(param, text string) (diag.Ref, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return diag.Ref{}, wire.BadRequest("%s: must be KIND/NAMESPACE/NAME, found %q", param, text)
	}
	kind, err := wire.KindNamed(param, parts[0])
	if err != nil {
		return diag.Ref{}, err
	}
	return diag.Ref{Kind: kind.Kind, Namespace: parts[1], Name: parts[2]}, nil
}

// proxiesOfOthers asks all other replicas at once.
func (h *Handler) proxiesOfOthers(w http.ResponseWriter, r *http.Request, node string, asked url.Values) []proxy {
	all, _ := h.askedOfOthers(w, r, node, asked)
	return all
}

// askedOfOthers asks all other replicas at once, and returns a text for each that does not answer.
func (h *Handler) askedOfOthers(w http.ResponseWriter, r *http.Request, node string, asked url.Values) (all []proxy, silent []string) {
	ctx, cancel := context.WithTimeout(r.Context(), replica.Timeout)
	defer cancel()
	var mu sync.Mutex
	silent = h.askOthers(ctx, w, "proxies", func(of replica.Replica) error {
		found, err := proxiesAt(ctx, of, node, asked)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, found...)
		return err
	})
	return all, silent
}

// proxiesAt returns the proxies that a replica knows, of one node or, if node is
// "", of all.
func proxiesAt(ctx context.Context, of replica.Replica, node string, asked url.Values) (found []proxy, err error) {
	path, q := []string{ProxiesPath}, url.Values{}
	if node != "" {
		path = append(path, url.PathEscape(node))
	}
	for _, name := range []string{"object", "disconnected"} {
		if asked.Has(name) {
			q.Set(name, asked.Get(name))
		}
	}
	_, err = replica.Ask(ctx, of, path, q, "", &found)
	if e, ok := errors.AsType[*replica.Error](err); ok && node != "" && e.IsWithout(node) {
		return nil, nil
	}
	return found, err
}
