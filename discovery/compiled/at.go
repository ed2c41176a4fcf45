package compiled

import "github.com/pilot-api/pilot-api/discovery/xds"

// At is the set that a proxy has, and the view that the set is from. For names that the
// proxy does not want, or nacked, it may have resources of another set.
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
