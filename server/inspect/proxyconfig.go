package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

var (
	inspectParams = wire.Params("resourceVersion", "labels", "local")
	configParams  = append(slices.Clone(inspectParams), "summary", "transport")
	routeParams   = append(slices.Clone(inspectParams), "url", "method", "header")
)

// inspected is the common head of answers about one proxy.
type inspected struct {
	Node      string `json:"node"`
	Namespace string `json:"namespace,omitempty"` // that the proxy states
	Revision  int64  `json:"revision"`
	// Known means that the proxy has connected to the replica that answers.
	Known bool `json:"known"`
}

// inspect answers a question about the proxy in the path. resourceVersion sets the
// state, as for problems; labels gives the labels of a proxy that is not known. The
// replica that the proxy is connected to answers, or with local=true this one. The caller
// needs the right to the subresource of proxies in all namespaces, or in that of the proxy.
func (h *Handler) inspect(w http.ResponseWriter, r *http.Request, subresource string, say func(*discovery.Inspection, inspected) (any, error)) error {
	q := wire.Query(r)
	atLeast, err := wire.AtLeastParam(q)
	if err != nil {
		return err
	}
	local, err := h.isLocal(r, q)
	if err != nil {
		return err
	}
	stated, err := labels.ConvertSelectorToLabelsMap(q.Get("labels"))
	if err != nil {
		return wire.BadRequest("labels must be as in app=web,version=v1: %v", err)
	}
	if len(stated) == 0 {
		stated = nil
	}
	node, err := discovery.NewNode(wire.PathParam(r, "node"), "", stated)
	if err != nil {
		return wire.BadRequest("%v", err)
	}
	right := gettingProxy(node.ID, subresource)
	in := h.namespacesFor(r.Context(), right)
	if !local {
		if said := h.saidElsewhere(w, r, node.ID, in); said != nil {
			return answer.WriteJSON(w, r, said)
		}
	}
	if err := h.AwaitPublished(r.Context(), atLeast); err != nil {
		return err
	}
	if in("") {
		in = nil // All, whatever they state.
	}
	i, err := h.opts.Discovery.InspectIn(node, in)
	if errors.Is(err, discovery.ErrOutOfSight) {
		return h.opts.Guard.Denied(r.Context(), right)
	}
	if err != nil {
		return notInspected(err)
	}
	name := "inspect " + wire.Short(r.URL.Path, wire.MostLogged)
	return h.opts.LargeReads.WriteJSON(w, r, name, func() (any, error) {
		said, err := say(i, inspected{i.Node, i.Namespace, i.Revision, i.Known})
		if err != nil {
			return nil, notInspected(err)
		}
		return said, nil
	})
}

// notInspected converts an error of an inspection: nothing is compiled yet, or
// there is no room to compile what is asked for.
func notInspected(err error) error {
	switch {
	case errors.Is(err, discovery.ErrBadNode):
		return wire.BadRequest("%s", strings.TrimPrefix(err.Error(), discovery.ErrBadNode.Error()+": "))
	case errors.Is(err, discovery.ErrNotReady), errors.Is(err, discovery.ErrOverBudget):
		return &store.Error{Kind: store.ErrUnavailable, Detail: err.Error(), Cause: err}
	}
	return err
}

// saidElsewhere returns the answer of the replica that a proxy is connected to. It
// returns nil if that is this replica, or if no other replica knows the proxy. Only proxies
// that state a namespace for which in returns true count.
func (h *Handler) saidElsewhere(w http.ResponseWriter, r *http.Request, node string, in func(namespace string) bool) json.RawMessage {
	if slices.ContainsFunc(h.opts.Discovery.ProxiesCalled(node), func(p discovery.ProxyStatus) bool { return in(p.Namespace) }) {
		return nil
	}
	at := h.replicaOf(w, r, node, in)
	if at.URL == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), publishTimeout+replica.Timeout)
	defer cancel()
	var said json.RawMessage
	if _, err := replica.Ask(ctx, at, []string{r.URL.EscapedPath()}, wire.Query(r), "", &said); err != nil {
		h.opts.Log.Warn("a replica does not tell what its proxy is told", "replica", at.Name, "url", at.URL, "node", wire.Short(node, wire.MostLogged), "error", wire.Short(err.Error(), wire.MostLogged))
		wire.AddWarning(w, fmt.Sprintf("the proxy is connected to replica %s, which does not answer: this is the configuration of a proxy with the same node id that states nothing else", at.Name))
		return nil
	}
	if !in("") && !isOf(said, in) {
		return nil // The replica knows several proxies with this id, and another one asked last.
	}
	return said
}

// isOf reports whether the proxy of an answer states a namespace for which in returns true.
func isOf(said json.RawMessage, in func(namespace string) bool) bool {
	var head inspected
	return json.Unmarshal(said, &head) == nil && in(head.Namespace)
}

// replicaOf returns the other replica that a proxy connected to last, if any.
func (h *Handler) replicaOf(w http.ResponseWriter, r *http.Request, node string, in func(namespace string) bool) (at replica.Replica) {
	ctx, cancel := context.WithTimeout(r.Context(), replica.Timeout)
	defer cancel()
	var mu sync.Mutex
	var since time.Time
	h.askOthers(ctx, w, "proxies", func(other replica.Replica) error {
		found, err := proxiesAt(ctx, other, node, nil)
		mu.Lock()
		defer mu.Unlock()
		for _, p := range found {
			if in(p.Namespace) && p.ConnectedSince.After(since) {
				at, since = other, p.ConnectedSince
			}
		}
		return err
	})
	return at
}

// proxyConfig answers with the resources of a proxy of one type or of all types, as
// Envoy's v3 messages, or with a summary of them if summary=true. A program without
// a proxy may share the node of the Envoy beside it; transport selects which of the
// two is meant.
func (h *Handler) proxyConfig(w http.ResponseWriter, r *http.Request) error {
	q := wire.Query(r)
	if err := wire.CheckParams(q, configParams); err != nil {
		return err
	}
	summary, err := wire.BoolParam(q, "summary")
	if err != nil {
		return err
	}
	types := discovery.ConfigTypes
	if name := wire.PathParam(r, "type"); slices.Contains(types, name) {
		types = []string{name}
	} else if name != "all" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "config"}, name+" (there are all, "+strings.Join(types, ", ")+")")
	}
	over := discovery.Transport(q.Get("transport"))
	if q.Has("transport") && !slices.Contains(discovery.InspectTransports, over) {
		return wire.BadParam(q, "transport", "one of delta, ads, rest and grpc")
	}
	return h.inspect(w, r, "config", func(i *discovery.Inspection, head inspected) (any, error) {
		i.Over = cmp.Or(over, i.Over)
		if summary {
			return summaryOf(i, head, types), nil
		}
		all := []discovery.Resource{}
		for _, name := range types {
			found, err := i.Resources(name)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		return struct {
			inspected
			Transport discovery.Transport  `json:"transport"` // that they are encoded for
			Resources []discovery.Resource `json:"resources"`
		}{head, i.Over, all}, nil
	})
}

func summaryOf(i *discovery.Inspection, head inspected, types []string) any {
	return struct {
		inspected
		*explain.Summary
	}{head, i.Explain().Summary().Only(types...)}
}
