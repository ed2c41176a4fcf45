package discovery

import "github.com/pilot-api/pilot-api/discovery/compiled"

// restream brings the endpoints of all views that somebody streams from one
// generation to the next, and returns the views that have others by that. The
// caller holds advancing.
func (p *Publisher) restream(before, next *compiled.Generation) map[*compiled.View]bool {
	services := next.Mesh.ServicesSince(before.Mesh)
	if len(services) == 0 {
		return nil
	}
	changed := map[*compiled.View]bool{}
	for v := range p.fleet.ViewsInForce() {
		if v.Follow(services, next) {
			changed[v] = true
		}
	}
	return changed
}
