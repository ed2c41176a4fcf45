package compiled

import (
	"slices"
	"strings"
	"weak"

	"github.com/pilot-api/pilot-api/discovery/xds"
)

// keptEndpoints identifies a result of EndpointsKeeping. It keeps no set in memory.
type keptEndpoints struct {
	to, sent weak.Pointer[xds.Set]
	names    string
}

// EndpointsKeeping returns a set of endpoints in which some names, which must be sorted,
// are as in the set that a proxy was sent. The result lacks the names that the proxy was
// not sent. Streams that go from one set to the other share the result.
func (st *Streamed) EndpointsKeeping(to, sent *xds.Set, names []string) *xds.Set {
	if len(names) == 0 || to == sent {
		return to
	}
	isKept := func(name string) bool { _, is := slices.BinarySearch(names, name); return is }
	d := to.Since(sent)
	if len(d.Removed) == 0 && !slices.ContainsFunc(d.Changed, func(r *xds.Resource) bool { return !isKept(r.Name) }) {
		return sent
	}
	key := keptEndpoints{weak.Make(to), weak.Make(sent), strings.Join(names, "\n")}
	st.besideMu.Lock()
	defer st.besideMu.Unlock()
	if s := st.kept[key]; s != nil {
		return s
	}
	all := make([]*xds.Resource, 0, len(to.Sorted))
	for _, r := range to.Sorted {
		if isKept(r.Name) {
			r = sent.Named(r.Name)
		}
		if r != nil {
			all = append(all, r)
		}
	}
	s := xds.NewEndpointSet(all, to.Proxyless)
	if st.kept == nil || len(st.kept) == maxMerged {
		st.kept = map[keptEndpoints]*xds.Set{}
	}
	st.kept[key] = s
	return s
}
