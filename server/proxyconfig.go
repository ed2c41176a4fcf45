package server

import (
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/explain"
)

var inspectParams = params("resourceVersion", "labels")

// inspected is the head of what is said of one proxy.
type inspected struct {
	Node     string `json:"node"`
	Revision int64  `json:"revision"`
	// Known: the proxy has asked this replica.
	Known bool `json:"known"`
}

// inspect looks at the proxy of a path: in the state that the request wants, as
// the problems do, and by the labels that it says of a proxy that is not known.
func (s *Server) inspect(r *http.Request) (*discovery.Inspection, inspected, error) {
	q := queryOf(r)
	atLeast, err := atLeastParam(q)
	if err != nil {
		return nil, inspected{}, err
	}
	stated, err := labels.ConvertSelectorToLabelsMap(q.Get("labels"))
	if err != nil {
		return nil, inspected{}, badRequest("labels must be as in app=web,version=v1: %v", err)
	}
	if len(stated) == 0 {
		stated = nil
	}
	node, err := discovery.NewNode(pathParam(r, "node"), "", stated)
	if err != nil {
		return nil, inspected{}, badRequest("%v", err)
	}
	if err := s.awaitPublished(r.Context(), atLeast); err != nil {
		return nil, inspected{}, err
	}
	i, err := s.opts.Discovery.Inspect(node)
	if err != nil {
		return nil, inspected{}, notInspected(err)
	}
	return i, inspected{i.Node, i.Revision, i.Known}, nil
}

// proxyConfig answers what a proxy is told of one type, or of all: Envoy's v3
// messages, or with summary=true what they come to.
func (s *Server) proxyConfig(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if err := checkParams(q, append(inspectParams, "summary")); err != nil {
		return err
	}
	summary, err := boolParam(q, "summary")
	if err != nil {
		return err
	}
	types := discovery.ConfigTypes
	if name := pathParam(r, "type"); slices.Contains(types, name) {
		types = []string{name}
	} else if name != "all" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "config"}, name+" (there are all, "+strings.Join(types, ", ")+")")
	}
	i, head, err := s.inspect(r)
	if err != nil {
		return err
	}
	if summary {
		return writeJSON(w, r, struct {
			inspected
			*explain.Summary
		}{head, i.Explain().Summary().Only(types...)})
	}
	all := []discovery.Resource{}
	for _, name := range types {
		found, err := i.Resources(name)
		if err != nil {
			return notInspected(err)
		}
		all = append(all, found...)
	}
	return writeJSON(w, r, struct {
		inspected
		Resources []discovery.Resource `json:"resources"`
	}{head, all})
}
