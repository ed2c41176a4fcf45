package describe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// part is a list of parts of an object, beyond the columns of its kind.
type part struct {
	name, head string
	rows       []string
}

// partsOf returns the parts of an object, for the kinds that have any. It returns none
// if the spec does not decode, because a problem reports that.
func partsOf(o *schema.Object) []part {
	spec, err := o.Spec()
	if err != nil {
		return nil
	}
	switch spec := spec.(type) {
	case *networking.VirtualService:
		return []part{{"Way Of Requests", "ROUTE\tMATCH\tTO", slices.Concat(httpRows(spec.GetHttp()), connectionRows(spec))}}
	case *networking.DestinationRule:
		return []part{{"Labels Of Subsets", "SUBSET\tLABELS", subsetRows(spec.GetSubsets())}}
	case *networking.ServiceEntry:
		return []part{{"Endpoints", "ADDRESS\tPORTS\tLABELS", endpointRows(spec.GetEndpoints())}}
	}
	return nil
}

// httpRows returns rows with the routes and, below each other, the matches of each.
func httpRows(routes []*networking.HTTPRoute) []string {
	var rows []string
	for i, r := range routes {
		first := "any request"
		if len(r.GetMatch()) > 0 {
			first = httpMatchText(r.GetMatch()[0])
		}
		rows = append(rows, strings.TrimSpace(fmt.Sprintf("http[%d] %s", i, r.GetName()))+"\t"+first+"\t"+httpTarget(r))
		for _, m := range r.GetMatch()[min(1, len(r.GetMatch())):] {
			rows = append(rows, "\tor "+httpMatchText(m))
		}
	}
	return rows
}

func httpTarget(r *networking.HTTPRoute) string {
	switch {
	case r.GetRedirect() != nil:
		return "redirect"
	case r.GetDirectResponse() != nil:
		return fmt.Sprintf("answer %d", r.GetDirectResponse().GetStatus())
	case r.GetDelegate() != nil:
		return "delegate " + strings.TrimPrefix(r.GetDelegate().GetNamespace()+"/"+r.GetDelegate().GetName(), "/")
	}
	var to []string
	for _, d := range r.GetRoute() {
		to = append(to, targetText(d.GetDestination(), d.GetWeight(), len(r.GetRoute())))
	}
	return strings.Join(to, ", ")
}

// targetText includes the weight if there are several destinations.
func targetText(to *networking.Destination, weight int32, of int) string {
	text := to.GetHost()
	if to.GetSubset() != "" {
		text += "/" + to.GetSubset()
	}
	if port := to.GetPort().GetNumber(); port > 0 {
		text += fmt.Sprintf(":%d", port)
	}
	if of > 1 {
		text += fmt.Sprintf(" weight %d", weight)
	}
	return text
}

func httpMatchText(m *networking.HTTPMatchRequest) string {
	var all []string
	say := func(subject string, c *networking.StringMatch) {
		if c != nil {
			all = append(all, subject+" "+conditionText(subject, c))
		}
	}
	say("path", m.GetUri())
	say("scheme", m.GetScheme())
	say("method", m.GetMethod())
	say("authority", m.GetAuthority())
	for _, name := range slices.Sorted(maps.Keys(m.GetHeaders())) {
		say(name, m.GetHeaders()[name])
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetWithoutHeaders())) {
		all = append(all, "not "+name+" "+conditionText(name, m.GetWithoutHeaders()[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetQueryParams())) {
		all = append(all, "?"+name+" "+conditionText(name, m.GetQueryParams()[name]))
	}
	if m.GetPort() > 0 {
		all = append(all, fmt.Sprintf("port %d", m.GetPort()))
	}
	if len(m.GetSourceLabels()) > 0 {
		all = append(all, "from "+mesh.Labels(m.GetSourceLabels()).String())
	}
	if m.GetSourceNamespace() != "" {
		all = append(all, "from namespace "+m.GetSourceNamespace())
	}
	if len(m.GetGateways()) > 0 {
		all = append(all, "through "+strings.Join(m.GetGateways(), " or "))
	}
	return cmp.Or(strings.Join(all, ", "), "any request")
}

// conditionText describes a condition without values that could grant access.
func conditionText(name string, c *networking.StringMatch) string {
	switch c.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return "is " + ir.Shown(name, c.GetExact())
	case *networking.StringMatch_Prefix:
		return "begins with " + ir.Shown(name, c.GetPrefix())
	case *networking.StringMatch_Regex:
		return "matches " + ir.Shown(name, c.GetRegex())
	}
	return "is there"
}

// connectionRows returns the rows of spec.tls and spec.tcp.
func connectionRows(spec *networking.VirtualService) []string {
	var rows []string
	add := func(name string, matches []string, route []*networking.RouteDestination) {
		var to []string
		for _, d := range route {
			to = append(to, targetText(d.GetDestination(), d.GetWeight(), len(route)))
		}
		rows = append(rows, name+"\t"+cmp.Or(strings.Join(matches, " or "), "any connection")+"\t"+strings.Join(to, ", "))
	}
	for i, r := range spec.GetTls() {
		var matches []string
		for _, m := range r.GetMatch() {
			matches = append(matches, "server name "+strings.Join(m.GetSniHosts(), " or "))
		}
		add(fmt.Sprintf("tls[%d]", i), matches, r.GetRoute())
	}
	for i, r := range spec.GetTcp() {
		var matches []string
		for _, m := range r.GetMatch() {
			if m.GetPort() > 0 {
				matches = append(matches, fmt.Sprintf("port %d", m.GetPort()))
			}
		}
		add(fmt.Sprintf("tcp[%d]", i), matches, r.GetRoute())
	}
	return rows
}

func subsetRows(subsets []*networking.Subset) []string {
	var rows []string
	for _, s := range subsets {
		rows = append(rows, s.GetName()+"\t"+cmp.Or(mesh.Labels(s.GetLabels()).String(), printer.None))
	}
	return rows
}

func endpointRows(endpoints []*networking.WorkloadEntry) []string {
	var rows []string
	for _, e := range endpoints {
		var ports []string
		for _, name := range slices.Sorted(maps.Keys(e.GetPorts())) {
			ports = append(ports, fmt.Sprintf("%s=%d", name, e.GetPorts()[name]))
		}
		rows = append(rows, cmp.Or(e.GetAddress(), printer.None)+"\t"+cmp.Or(strings.Join(ports, ","), printer.None)+"\t"+cmp.Or(mesh.Labels(e.GetLabels()).String(), printer.None))
	}
	return rows
}
