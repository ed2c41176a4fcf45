package compile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/diag"
)

// maxUndeclaredPorts is the maximum number of HTTP ports at which hosts are routed
// that no service has there. It is more than people use, and bounds the cost of a
// rule for such a host, whatever ports others open.
const maxUndeclaredPorts = 64

// undeclaredPorts are those HTTP ports of the mesh, sorted.
type undeclaredPorts struct {
	numbers []int
	further int // number of HTTP ports beyond these
}

func (u *undeclaredPorts) equal(other *undeclaredPorts) bool {
	return u.further == other.further && slices.Equal(u.numbers, other.numbers)
}

// findUndeclaredPorts returns port 80 and then the ports that services had first,
// so that new services remove none. Ports of EgressRules count even if the rules
// are withheld.
func (rd *reader) findUndeclaredPorts(none) *undeclaredPorts {
	since := map[int]time.Time{}
	for _, svc := range slices.Concat(rd.services(), rd.egressDeclared.Get(rd.r, none{}).services) {
		for _, port := range svc.Ports {
			if first, known := since[port.Number]; rd.routesHTTP(svc, port) && (!known || svc.Created.Before(first)) {
				since[port.Number] = svc.Created
			}
		}
	}
	delete(since, undeclaredPort)
	var all []int
	for number := range since {
		all = append(all, number)
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Or(since[a].Compare(since[b]), cmp.Compare(a, b)) })
	few := min(len(all), maxUndeclaredPorts-1)
	numbers := append([]int{undeclaredPort}, all[:few]...)
	slices.Sort(numbers)
	return &undeclaredPorts{numbers, len(all) - few}
}

func (rd *reader) routesUndeclaredAt(port int) bool {
	_, is := slices.BinarySearch(rd.undeclaredPorts.Get(rd.r, none{}).numbers, port)
	return is
}

// refusesUndeclaredAt reports whether callers of a scope follow rules for loose
// hosts that are not routed at a port.
func (rd *reader) refusesUndeclaredAt(s scope, port int) bool {
	signs := rd.undeclaredSigns.Get(rd.r, ruleScope(s))
	return signs.crowd != "" || signs.atAll && !rd.routesUndeclaredAt(port)
}

// checkUndeclaredPorts reports ports at which a VirtualService is not followed.
func (p *plan) checkUndeclaredPorts(vs *virtualService) {
	further := p.undeclaredPorts.Get(p.r, none{}).further
	if further == 0 || len(vs.http) == 0 {
		return
	}
	if slices.ContainsFunc(p.virtualOf.names(vs), p.isLoose) {
		p.notHonoured(diag.PartLeftOut, vs.ref, "spec.hosts", fmt.Sprintf(
			"the VirtualService does not apply at %d HTTP ports of the mesh, where callers that follow it refuse unknown hosts: rules for hosts that no service has at a port apply only at the %d ports that services had first",
			further, maxUndeclaredPorts))
	}
}
