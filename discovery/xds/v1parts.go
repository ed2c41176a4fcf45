package xds

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/ir"
)

// V1Parts has the parts of configurations in v1 form, each encoded once. Listeners are not
// among them, because their faults depend on whole tables.
type V1Parts struct {
	Contain  Contain
	clusters cached.Attached[ir.Cluster, struct{}, *v1Part]
	hosts    cached.Attached[ir.VirtualHost, struct{}, *v1Part]
	tables   cached.Attached[ir.RouteTable, struct{}, *V1List]
}

// v1Part is an encoded object of an answer.
type v1Part struct {
	text     []byte
	hash     Digest
	problems diag.Interned
	closes   bool  // has routes to a cluster without hosts (v1.BlackHole)
	err      error // a bug of the server
}

func (p *V1Parts) encode(made func(*v1Part) any) *v1Part {
	out := &v1Part{}
	out.err = p.Contain("v1", func() error {
		text, err := encodeV1(made(out))
		out.text = bytes.TrimSuffix(text, []byte("\n"))
		out.hash = sum(out.text)
		return err
	})
	return out
}

func (p *V1Parts) cluster(c *ir.Cluster) *v1Part {
	return p.clusters.Of(c, struct{}{}, func() *v1Part {
		return p.encode(func(out *v1Part) any {
			made, problems := v1.OneCluster(c)
			out.problems = diag.Intern(problems, diag.LostInV1)
			return made
		})
	})
}

func (p *V1Parts) host(h *ir.VirtualHost) *v1Part {
	return p.hosts.Of(h, struct{}{}, func() *v1Part {
		return p.encode(func(out *v1Part) any {
			made, problems := v1.OneHost(h)
			out.problems, out.closes = diag.Intern(problems, diag.LostInV1), made.Closes()
			return made
		})
	})
}

func (p *V1Parts) Table(t *ir.RouteTable) *V1List {
	return p.tables.Of(t, struct{}{}, func() *V1List {
		all := make([]*v1Part, len(t.VirtualHosts))
		for i, h := range t.VirtualHosts {
			all[i] = p.host(h)
		}
		return newV1List(`{"validate_clusters":true,"virtual_hosts":[`, all)
	})
}

// ClustersOf returns the clusters of a configuration. If a route is closed, it adds the
// cluster of closed routes.
func (p *V1Parts) ClustersOf(config *ir.Config) *V1List {
	all := make([]*v1Part, len(config.Clusters), len(config.Clusters)+1)
	for i, c := range config.Clusters {
		all[i] = p.cluster(c)
	}
	if p.closes(config) && !v1.HasBlackHole(config) {
		all = append(all, p.encode(func(*v1Part) any { return v1.BlackHole() }))
	}
	return newV1List(`{"clusters":[`, all)
}

func (p *V1Parts) closes(config *ir.Config) bool {
	return slices.ContainsFunc(config.RouteTables, func(t *ir.RouteTable) bool { return p.Table(t).closes }) ||
		slices.ContainsFunc(config.Listeners, func(l *ir.Listener) bool {
			return l.HTTP != nil && l.HTTP.Inline != nil && p.Table(l.HTTP.Inline).closes || v1.ClosesTCP(l)
		})
}

// V1List is an answer that is a list. It is spliced from its parts.
type V1List struct {
	head   string
	parts  []*v1Part
	closes bool
	Err    error

	version string
	body    cached.Brief[[]byte]
}

func newV1List(head string, parts []*v1Part) *V1List {
	l := &V1List{head: head, parts: parts}
	h := sha256.New()
	for _, p := range parts {
		h.Write(p.hash[:])
		l.closes = l.closes || p.closes
		if l.Err == nil {
			l.Err = p.err
		}
	}
	l.version = Digest(h.Sum(nil)).Version()
	return l
}

func (l *V1List) AddProblems(to *diag.Collector) {
	for _, p := range l.parts {
		p.problems.AddTo(to, diag.LostInV1)
	}
}

func (l *V1List) Answer() Answer {
	return Answer{Version: l.version, Body: *l.body.Get(func() *[]byte {
		size := len(l.head) + len("]}\n")
		for _, p := range l.parts {
			size += len(p.text) + 1
		}
		out := append(make([]byte, 0, size), l.head...)
		for i, p := range l.parts {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, p.text...)
		}
		out = append(out, "]}\n"...)
		return &out
	})}
}

// encodeV1 encodes a value in the order of the caller, because a v1 Envoy treats the order
// as content.
func encodeV1(body any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, fmt.Errorf("encode v1 answer: %w", err)
	}
	return text.Bytes(), nil
}

func EncodeV1(body any) (Answer, error) {
	text, err := encodeV1(body)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Version: sum(text).Version(), Body: text}, nil
}

// Len returns how many parts are kept.
func (p *V1Parts) Len() int { return p.clusters.Len() + p.tables.Len() + p.hosts.Len() }
