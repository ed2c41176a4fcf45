// Package compile turns config objects into what a proxy must do. It is the
// only package that knows both the config kinds and the IR.
//
// An object goes through three passes, each of which hands over values:
//
//	read   an object by itself becomes a rule (reading.go)
//	check  what is wrong with a rule in this mesh
//	write  what follows for proxies
//
// Files of a kind are called by it and by the pass: virtualservice_read.go,
// virtualservice_check.go, virtualservice_write_http.go. Where little is said of
// a kind, all passes are in one file: destinationpolicy.go, destinationrule.go,
// sidecar.go. What belongs to no kind is called by what it is: cluster.go has the
// clusters that routes lead to; layout.go (contested.go), outbound.go and tcp.go are what all
// proxies of a scope have in common, view.go with inbound.go is what a proxy is
// told.
//
// model.go says how the passes depend on each other. All of them are queries
// (package query), over rules that are found by claims.go and index.go and
// services by registry.go: a change has made again what it concerns, and
// nothing else.
//
// Compiling is a pure function: the same snapshot and view give the same IR,
// in the same order, on every replica and after whatever came before. One bad
// object never spoils the rest: what cannot be honoured is closed and becomes a
// Problem on its object. As the object is stored all the same, every problem is
// a warning.
package compile

import (
	"cmp"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Proxy compiles the configuration of all proxies with one view, of a snapshot
// that nothing is known of. The problems, sorted by object, are those of the
// whole snapshot that the config kinds are to blame for, and those that only
// this view has; the registry's own are in Snapshot.Problems.
func Proxy(s *mesh.Snapshot, v mesh.View) (*ir.Config, diag.List) {
	c := NewCompiler()
	c.Advance(s)
	config, own := c.Proxy(v)
	problems := slices.Concat(c.Problems(), own)
	sortProblems(problems)
	return config, problems
}

func sortProblems(l diag.List) {
	slices.SortStableFunc(l, func(a, b diag.Problem) int {
		return cmp.Compare(a.Object.String(), b.Object.String())
	})
}
