package feedback

import (
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// Workloads maps WorkloadEntries to the services that they are instances of. The parts of a
// view name services, and endpoints change independently of the view. So a WorkloadEntry
// affects the proxies that have clusters of its services. The zero Workloads has none. A
// value does not change.
type Workloads struct {
	hosts  map[diag.Ref][]string     // as keys name them (mesh.Service.KeyHost)
	former map[diag.Ref][]formerHost // that some proxies may still have
}

// formerHost is a service of which a WorkloadEntry is no instance from a revision on.
type formerHost struct {
	host  string
	until int64
}

// maxFormer bounds the WorkloadEntries with former hosts. Beyond it all are forgotten.
const maxFormer = 4096

// workloadKind is the kind whose objects are instances of services that others declare.
const workloadKind = "WorkloadEntry"

// Next returns the workloads of a snapshot. before is nil for the first.
func (w Workloads) Next(before, snapshot *mesh.Snapshot) Workloads {
	out, copied := w, false
	for _, c := range snapshot.ServicesSince(before) {
		was, is := workloadsOf(c.Before), workloadsOf(c.After)
		if slices.Equal(was, is) {
			continue
		}
		if !copied {
			out, copied = w.clone(), true
		}
		for _, ref := range was {
			out.leave(ref, c.Before.KeyHost(), snapshot.Revision)
		}
		for _, ref := range is {
			out.hosts[ref] = append(slices.Clone(out.hosts[ref]), c.After.KeyHost())
		}
	}
	for ref, former := range out.former {
		// It may be an instance again, or may only have changed.
		former = slices.DeleteFunc(slices.Clone(former), func(f formerHost) bool { return slices.Contains(out.hosts[ref], f.host) })
		if out.former[ref] = former; len(former) == 0 {
			delete(out.former, ref)
		}
	}
	return out
}

func (w Workloads) clone() Workloads {
	out := Workloads{map[diag.Ref][]string{}, map[diag.Ref][]formerHost{}}
	maps.Copy(out.hosts, w.hosts)
	if len(w.former) < maxFormer {
		maps.Copy(out.former, w.former)
	}
	return out
}

// leave notes that a workload is no instance of a host from a revision on.
func (w Workloads) leave(ref diag.Ref, host string, until int64) {
	w.hosts[ref] = slices.DeleteFunc(slices.Clone(w.hosts[ref]), func(h string) bool { return h == host })
	if len(w.hosts[ref]) == 0 {
		delete(w.hosts, ref)
	}
	w.former[ref] = append(slices.Clone(w.former[ref]), formerHost{host, until})
}

// workloadsOf returns the WorkloadEntries that are instances of a service, nil for none,
// each once.
func workloadsOf(s *mesh.Service) (refs []diag.Ref) {
	if s == nil {
		return nil
	}
	for _, i := range s.Instances {
		if i.Origin.Kind != workloadKind {
			continue
		}
		// The ports of one come one after the other, or all of one port do.
		if ref := i.Origin.Ref(); len(refs) == 0 || refs[len(refs)-1] != ref {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, compareRefs)
	return slices.Compact(refs)
}
