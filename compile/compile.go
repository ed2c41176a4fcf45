// Package compile turns config objects into the configuration of a proxy. It is the
// only package that knows both the config kinds and the IR.
//
// An object goes through three passes. Each pass hands values to the next:
//
//	read   turns a single object into a rule (reading.go)
//	check  finds what is wrong with a rule in this mesh
//	write  derives the configuration of proxies
//
// Files are named after their kind and pass: virtualservice_read.go,
// virtualservice_check.go, virtualservice_write_http.go. A kind with little code has all
// passes in one file: destinationpolicy.go, destinationrule.go, sidecar.go. Files that
// belong to no kind are named after their subject. cluster.go has the clusters that routes
// lead to. layout.go (contested.go), outbound.go and tcp.go have the parts that all proxies
// of a scope share. view.go and inbound.go have the configuration of a single proxy.
//
// model.go shows how the passes depend on each other. All passes are queries (package
// query). They find rules through hostindex.go and index.go, and services through
// registry.go. A change recomputes only the results that it affects.
//
// Compiling is a pure function: the same snapshot and view give the same IR, in the same
// order, on every replica and after any history. One bad object never affects the rest: a
// rule that cannot be honoured fails closed and becomes a Problem on its object. Every
// problem is a warning, because the object is already stored.
package compile

import (
	"cmp"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Proxy compiles the configuration of all proxies with one view, from scratch. The problems
// are sorted by object. They include the problems of the whole snapshot that the config
// kinds cause, and the problems of this view. The registry's own problems are in
// Snapshot.Problems.
func Proxy(s *mesh.Snapshot, traits mesh.Traits) (*ir.Config, diag.List) {
	c := NewCompiler()
	c.Advance(s)
	config, own := c.Proxy(traits)
	problems := slices.Concat(c.Problems(), own)
	sortProblems(problems)
	return config, problems
}

func sortProblems(l diag.List) {
	slices.SortStableFunc(l, func(a, b diag.Problem) int {
		return cmp.Compare(a.Object.String(), b.Object.String())
	})
}
