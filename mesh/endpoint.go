package mesh

import (
	"fmt"
	"net/netip"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// endpoint is one place where all ports of a service are served.
type endpoint struct {
	spec   *networking.WorkloadEntry
	labels Labels
	origin schema.Key
}

// endpoints of an entry: those written inline, then the workloads that its
// selector picks. Addresses that the resolution cannot use are left out.
func (r *registry) endpoints(o *schema.Object, entry *networking.ServiceEntry, res Resolution) []endpoint {
	var out []endpoint
	for i, spec := range entry.GetEndpoints() {
		if reason := unusable(spec.GetAddress(), res); reason != "" {
			r.report(leftOut(o.Key(), fmt.Sprintf("spec.endpoints[%d].address", i), spec, reason))
			continue
		}
		out = append(out, endpoint{spec: spec, labels: spec.GetLabels(), origin: o.Key()})
	}
	if entry.GetWorkloadSelector() == nil {
		return out
	}
	picked := r.workloads.pick(o.Meta.Namespace, entry.GetWorkloadSelector().GetLabels())
	if len(picked) == 0 {
		r.report(selectsNothing(o, entry))
	}
	for _, w := range picked {
		if reason := unusable(w.spec.GetAddress(), res); reason != "" {
			r.report(leftOut(w.origin, "spec.address", w.spec, fmt.Sprintf("%s, as %s has it", reason, o.Key())))
			continue
		}
		out = append(out, w.endpoint)
	}
	return out
}

// unusable says why an address cannot be an endpoint; "" when it can.
func unusable(address string, res Resolution) string {
	_, err := netip.ParseAddr(address)
	switch {
	case address == "":
		return "an endpoint needs an address"
	case strings.HasPrefix(address, "unix:"):
		return "unix sockets are not supported"
	case res == Static && err != nil:
		return "resolution STATIC takes IP addresses only"
	case res == Passthrough:
		return "resolution NONE takes no endpoints"
	}
	return ""
}

func leftOut(key schema.Key, field string, spec *networking.WorkloadEntry, reason string) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Object: key.Ref(),
		Field: field, Value: fmt.Sprintf("%q", spec.GetAddress()),
		Message: "the endpoint is left out: " + reason,
	}
}

func selectsNothing(o *schema.Object, entry *networking.ServiceEntry) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.NoSuchReference, Object: o.Key().Ref(),
		Field: "spec.workloadSelector.labels", Value: fmt.Sprintf("%q", Labels(entry.GetWorkloadSelector().GetLabels()).String()),
		Message: fmt.Sprintf("no WorkloadEntry in namespace %s has these labels", o.Meta.Namespace),
	}
}

// instances of a service: each endpoint at each port.
func instances(svc *Service, entry *networking.ServiceEntry, endpoints []endpoint) []*Instance {
	targets := map[string]int{}
	for _, p := range entry.GetPorts() {
		targets[p.GetName()] = int(p.GetTargetPort())
	}
	var out []*Instance
	for _, e := range endpoints {
		for _, port := range svc.Ports {
			out = append(out, &Instance{
				Service:      svc,
				Port:         port,
				Address:      canonicalIP(e.spec.GetAddress()),
				EndpointPort: endpointPort(e.spec, port, targets[port.Name]),
				Labels:       e.labels,
				Zone:         e.spec.GetLocality(),
				Weight:       int(e.spec.GetWeight()),
				Origin:       e.origin,
			})
		}
	}
	return out
}

// endpointPort is the endpoint's own word, else the service's target port,
// else the number of the service port.
func endpointPort(spec *networking.WorkloadEntry, port *Port, target int) int {
	if own, ok := spec.GetPorts()[port.Name]; ok {
		return int(own)
	}
	if target != 0 {
		return target
	}
	return port.Number
}

// reportUnheeded tells what an endpoint says that no proxy will follow; at is
// where in the object the endpoint stands.
func reportUnheeded(e *networking.WorkloadEntry, object diag.Ref, at string, report func(diag.Problem)) {
	for _, f := range []struct{ field, value, message string }{
		{"network", e.GetNetwork(), "every endpoint is reached directly, whatever its network"},
		{"serviceAccount", e.GetServiceAccount(), "certificates of endpoints are not checked"},
	} {
		if f.value != "" {
			report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NotHonoured, Object: object,
				Field: at + "." + f.field, Value: fmt.Sprintf("%q", f.value), Message: f.message,
			})
		}
	}
}
