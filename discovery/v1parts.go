package discovery

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/ir"
)

// v1Parts are the parts of configurations as v1 has them, each encoded once.
// Listeners are not among them: their faults are those of whole tables.
type v1Parts struct {
	contain  contain
	clusters attached[ir.Cluster, struct{}, *v1Part]
	hosts    attached[ir.VirtualHost, struct{}, *v1Part]
	tables   attached[ir.RouteTable, struct{}, *v1List]
}

// v1Part is an encoded object of an answer.
type v1Part struct {
	text     []byte
	hash     digest
	problems diag.Interned
	closes   bool  // has routes to where nobody is (v1.BlackHole)
	err      error // a mistake of ours
}

func (p *v1Parts) encode(spelled func(*v1Part) any) *v1Part {
	out := &v1Part{}
	out.err = p.contain("v1", func() error {
		text, err := v1JSON(spelled(out))
		out.text = bytes.TrimSuffix(text, []byte("\n"))
		out.hash = sum(out.text)
		return err
	})
	return out
}

func (p *v1Parts) cluster(c *ir.Cluster) *v1Part {
	return p.clusters.of(c, struct{}{}, func() *v1Part {
		return p.encode(func(out *v1Part) any {
			spelled, problems := v1.OneCluster(c)
			out.problems = diag.Intern(problems, diag.LostInV1)
			return spelled
		})
	})
}

func (p *v1Parts) host(h *ir.VirtualHost) *v1Part {
	return p.hosts.of(h, struct{}{}, func() *v1Part {
		return p.encode(func(out *v1Part) any {
			spelled, problems := v1.OneHost(h)
			out.problems, out.closes = diag.Intern(problems, diag.LostInV1), spelled.Closes()
			return spelled
		})
	})
}

func (p *v1Parts) table(t *ir.RouteTable) *v1List {
	return p.tables.of(t, struct{}{}, func() *v1List {
		all := make([]*v1Part, len(t.VirtualHosts))
		for i, h := range t.VirtualHosts {
			all[i] = p.host(h)
		}
		return newV1List(`{"validate_clusters":true,"virtual_hosts":[`, all)
	})
}

// clustersOf are the clusters of a configuration. Where routes are closed, there
// is one cluster more.
func (p *v1Parts) clustersOf(config *ir.Config) *v1List {
	all := make([]*v1Part, len(config.Clusters), len(config.Clusters)+1)
	for i, c := range config.Clusters {
		all[i] = p.cluster(c)
	}
	if p.closes(config) && !v1.HasBlackHole(config) {
		all = append(all, p.encode(func(*v1Part) any { return v1.BlackHole() }))
	}
	return newV1List(`{"clusters":[`, all)
}

func (p *v1Parts) closes(config *ir.Config) bool {
	return slices.ContainsFunc(config.RouteTables, func(t *ir.RouteTable) bool { return p.table(t).closes }) ||
		slices.ContainsFunc(config.Listeners, func(l *ir.Listener) bool {
			return l.HTTP != nil && l.HTTP.Inline != nil && p.table(l.HTTP.Inline).closes || v1.ClosesTCP(l)
		})
}

// v1List is an answer that is a list, spliced from its parts.
type v1List struct {
	head   string
	parts  []*v1Part
	closes bool
	err    error

	version string
	body    brief[[]byte]
}

func newV1List(head string, parts []*v1Part) *v1List {
	l := &v1List{head: head, parts: parts}
	h := sha256.New()
	for _, p := range parts {
		h.Write(p.hash[:])
		l.closes = l.closes || p.closes
		if l.err == nil {
			l.err = p.err
		}
	}
	l.version = digest(h.Sum(nil)).version()
	return l
}

func (l *v1List) addProblems(to *diag.Collector) {
	for _, p := range l.parts {
		p.problems.AddTo(to, diag.LostInV1)
	}
}

func (l *v1List) answer() Answer {
	return Answer{Version: l.version, Body: *l.body.get(func() *[]byte {
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
