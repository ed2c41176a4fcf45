package mesh

import (
	"slices"
	"sync"
)

// instanceIndex finds the instances of a service by port, and by port and a single
// label. It holds positions in ascending order. Each half is built on first use.
type instanceIndex struct {
	ports   sync.Once
	byPort  map[string][]int
	labels  sync.Once
	byLabel map[portLabel][]int
}

type portLabel struct{ port, name, value string }

// Select returns the instances at the port of this name that have all the labels,
// in registry order. It takes time in proportion to the number of instances with
// the rarest of the labels.
func (s *Service) Select(port string, labels Labels) []*Instance {
	var out []*Instance
	for _, i := range s.positions(port, labels) {
		if labels.SubsetOf(s.Instances[i].Labels) {
			out = append(out, s.Instances[i])
		}
	}
	return out
}

// positions returns the candidates: instances at the port that have one of the
// labels.
func (s *Service) positions(port string, labels Labels) []int {
	x := &s.index
	x.ports.Do(func() {
		x.byPort = map[string][]int{}
		for i, one := range s.Instances {
			x.byPort[one.Port.Name] = append(x.byPort[one.Port.Name], i)
		}
	})
	candidates := x.byPort[port]
	if len(labels) == 0 {
		return candidates
	}
	x.labels.Do(func() {
		x.byLabel = map[portLabel][]int{}
		for i, one := range s.Instances {
			for name, value := range one.Labels {
				at := portLabel{one.Port.Name, name, value}
				x.byLabel[at] = append(x.byLabel[at], i)
			}
		}
	})
	for name, value := range labels {
		if some := x.byLabel[portLabel{port, name, value}]; len(some) < len(candidates) {
			candidates = some
		}
	}
	return candidates
}

// selected returns the instances that a key means, in registry order. A key without
// a port means the port without a name.
func (s *Service) selected(key ServiceKey) []*Instance {
	ports, sets := key.Ports, key.LabelSets
	if len(ports) == 0 {
		ports = []string{""}
	}
	if len(sets) == 0 {
		sets = []Labels{nil}
	}
	if len(ports) == 1 && len(sets) == 1 {
		return s.Select(ports[0], sets[0])
	}
	var at []int
	for _, port := range slices.Compact(slices.Sorted(slices.Values(ports))) {
		for _, set := range sets {
			for _, i := range s.positions(port, set) {
				if set.SubsetOf(s.Instances[i].Labels) {
					at = append(at, i)
				}
			}
		}
	}
	slices.Sort(at)
	var out []*Instance
	for _, i := range slices.Compact(at) {
		out = append(out, s.Instances[i])
	}
	return out
}
