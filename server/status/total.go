package status

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// fleetStatus is the status of an object on the proxies of all replicas.
type fleetStatus struct {
	discovery.ObjectStatus
	behind  []string // replicas that have not published it yet
	silent  []string // what is missing
	awaited []string // replicas whose proxies may be on their way back
	gone    []string // replicas whose proxies do not count
	// returning are proxies that were connected before a start and are awaited, while it is
	// not known whether the object concerns them.
	returning int
}

func (s fleetStatus) programmed() schema.Programmed {
	return schema.Programmed{Proxies: s.Proxies, Running: s.Running, Fetched: s.Fetched}
}

// isPlain reports whether there is nothing to report but numbers of proxies.
func (s fleetStatus) isPlain() bool {
	return len(s.Problems)+len(s.Refusals)+len(s.behind)+len(s.silent)+len(s.awaited)+len(s.gone)+s.Away+s.returning == 0
}

// add puts what the others say of an object of a revision to what is known here.
func (all peerSnapshot) add(own discovery.ObjectStatus, ref diag.Ref, revision int64) fleetStatus {
	out := fleetStatus{ObjectStatus: own, silent: all.silent, awaited: all.awaited, gone: all.gone, returning: all.returning}
	for _, p := range all.answers {
		s := p.reports[ref]
		out.Proxies += s.Proxies
		if p.revision < revision {
			out.behind = append(out.behind, p.lag())
			continue
		}
		out.Running += s.Running
		out.Fetched += s.Fetched
		out.Away += s.Away
		out.Refusals = slices.Concat(out.Refusals, s.Refusals)
	}
	return out
}
