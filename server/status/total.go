package status

import (
	"slices"
	"strings"

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

// within returns the status with the names of objects and proxies of one namespace only.
func (s fleetStatus) within(namespace string) fleetStatus {
	other := func(ref diag.Ref) bool { return ref.Namespace != namespace }
	problems, refusals := slices.Clone(s.Problems), slices.Clone(s.Refusals)
	for i, p := range problems {
		if slices.ContainsFunc(p.Names(), other) {
			problems[i] = p.General("an object of another namespace, which 'istioctl problems' names to those who may read it")
		}
	}
	for i, r := range refusals {
		if !strings.Contains(r.Node, "~"+namespace+".svc.") {
			refusals[i].Node, refusals[i].Words = "of another namespace", "'istioctl proxy-status -o wide' shows why to those who may see it"
		}
	}
	s.Problems, s.Refusals = problems, refusals
	return s
}
