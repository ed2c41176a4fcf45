package fleet

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/mesh"
)

// Call moves a proxy to the entry of the view for some called hosts; nil means all, and that
// the proxy asks for none. If there is no room for another view, it is one for all hosts. The
// proxy keeps its last view until Arrive. Call returns false if the proxy stays where it is.
func (f *Fleet) Call(c *Client, called *mesh.Called, g *compiled.Generation) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.whole.Load() {
		called = nil
	}
	if f.clients[c.Node] != c || c.called.Load().Equal(called) {
		return false
	}
	c.called.Store(called)
	traits := c.TraitsIn(g.Mesh)
	if called != nil && f.entries[traits.Key()] == nil && len(f.entries) >= f.opts.MaxViews {
		c.called.Store(mesh.CallsEverything())
		traits = c.TraitsIn(g.Mesh)
	}
	f.moveLocked(c, traits, g)
	return true
}

// KeepWhole excludes a proxy from views for called hosts: another program with its node asks
// in a way that has no such views. It reports whether the proxy had one.
func (f *Fleet) KeepWhole(c *Client) bool { return !c.whole.Swap(true) && c.called.Load() != nil }

// CallsSome reports whether the view of the proxy is for called hosts.
func (c *Client) CallsSome() bool { return c.called.Load() != nil }

// Arrive gives a moved proxy the view of its entry, if the entry has one.
func (f *Fleet) Arrive(c *Client, serial int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := c.assignment.Load()
	if _, moved := f.behind[c]; !moved || at.entry.current.Load() == nil {
		return
	}
	c.assignment.Store(&assignment{entry: at.entry, since: serial, revision: at.revision})
	delete(f.behind, c)
	c.awakeLocked()
}
