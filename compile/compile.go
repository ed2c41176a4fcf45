// Package compile turns config objects into what a proxy must do. It is the
// only package that knows both the config kinds and the IR: one front-end file
// a kind (routerule.go, destinationpolicy.go, …), services.go for what follows
// from the registry alone, and this file, which runs them in order.
//
// Compiling is a pure function: the same snapshot and view give the same IR,
// in the same order, on every replica. One bad object never spoils the rest:
// what cannot be honoured is left out and becomes a Problem on its object.
package compile

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Proxy compiles the configuration of all proxies with one view.
func Proxy(s *mesh.Snapshot, v mesh.View) (*ir.Config, diag.List) { panic("not written yet") }
