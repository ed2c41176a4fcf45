package compiled

import "github.com/pilot-api/pilot-api/discovery/xds"

// At is a set, and the view that it is of. Of what the proxy does not want, or has
// refused, it is at another one.
type At struct {
	Set  *xds.Set
	View *View
}

func (a At) Named(name string) *xds.Resource {
	if a.Set == nil {
		return nil
	}
	return a.Set.Named(name)
}
