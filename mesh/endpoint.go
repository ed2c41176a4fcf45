package mesh

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// endpoint is a workload that serves all ports of a service.
type endpoint struct {
	spec   *networking.WorkloadEntry
	labels Labels
	weight int // 0 when unset
	origin schema.Key
	at     string // field in origin
}

// endpoints returns the endpoints of an entry: first the inline ones, then the
// workloads that its selector picks. It omits addresses that the resolution cannot
// use.
func (r *registry) endpoints(e *entry, res Resolution) []endpoint {
	o, entry := e.Object, e.spec
	if r.withheld.has(e) {
		return nil
	}
	var out []endpoint
	for i, spec := range entry.GetEndpoints() {
		at := fmt.Sprintf("spec.endpoints[%d]", i)
		e := endpoint{spec: spec, labels: spec.GetLabels(), weight: int(spec.GetWeight()), origin: o.Key(), at: at}
		if reason := r.unusable(e, res); reason != "" {
			r.report(leftOut(o.Key(), at+".address", spec, reason))
			continue
		}
		out = append(out, e)
	}
	if entry.GetWorkloadSelector() == nil {
		r.weigh(o, out)
		return out
	}
	if len(e.picked) == 0 {
		r.report(selectsNothing(o, entry))
	}
	for _, w := range e.picked {
		if reason := r.unusable(w.endpoint, res); reason != "" {
			r.report(leftOut(w.origin, "spec.address", w.spec, fmt.Sprintf("%s, as %s has it", reason, o.Key())))
			continue
		}
		out = append(out, w.endpoint)
	}
	r.weigh(o, out)
	return out
}

// network returns the network of the endpoint, or "" if it is not set.
func (e endpoint) network() string { return cmp.Or(e.spec.GetNetwork(), e.labels[NetworkLabel]) }

func (r *registry) behindGateway(e endpoint) bool { return len(r.settings.Networks[e.network()]) > 0 }

// unusable returns why an endpoint cannot be used, or "".
func (r *registry) unusable(e endpoint, res Resolution) string {
	if e.spec.GetAddress() == "" && res != Passthrough && r.behindGateway(e) {
		return ""
	}
	if reason := unusable(e.spec.GetAddress(), res); reason != "" || !e.isSocket() {
		return reason
	}
	return r.settings.RefusesSocket(e.spec.GetAddress())
}

// unusable returns why an address cannot be that of an endpoint, or "".
func unusable(address string, res Resolution) string {
	_, err := netip.ParseAddr(address)
	switch path, unix := strings.CutPrefix(address, unixScheme); {
	case address == "":
		return "an endpoint needs an address"
	case unix && res == Static && !isSocket(path):
		return "a socket is a path from / or @ and a name, of at most 107 bytes"
	case unix && res == DNS:
		return "a socket needs resolution STATIC"
	case res == Static && err != nil && !unix:
		return "resolution STATIC allows only IP addresses and sockets"
	case res == Passthrough:
		return "resolution NONE allows no endpoints"
	}
	return ""
}

// isSocket reports whether path can be the path of a socket address, which has at
// most 107 bytes.
func isSocket(path string) bool {
	return len(path) > 1 && len(path) <= 107 && (path[0] == '/' || path[0] == '@') && !strings.ContainsRune(path, 0)
}

func leftOut(key schema.Key, field string, spec *networking.WorkloadEntry, reason string) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.PartLeftOut, Object: key.Ref(),
		Field: field, Value: fmt.Sprintf("%q", spec.GetAddress()),
		Message: "the endpoint is left out: " + reason,
	}
}

func selectsNothing(o *schema.Object, entry *networking.ServiceEntry) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.SelectsNothing, Object: o.Key().Ref(),
		Field: "spec.workloadSelector.labels", Value: fmt.Sprintf("%q", Labels(entry.GetWorkloadSelector().GetLabels()).String()),
		Message: fmt.Sprintf("no WorkloadEntry in namespace %s has these labels", o.Meta.Namespace),
	}
}

// endpointPort is an endpoint at one port of the service.
type endpointPort struct {
	endpoint
	address string // canonical
	port    *Port
	number  int // port that the endpoint listens on
}

// endpointPorts returns all endpoints at all ports. It omits an endpoint at a port for
// which it has an invalid number.
func (r *registry) endpointPorts(ports []*Port, endpoints []endpoint) []endpointPort {
	var out []endpointPort
	for _, e := range endpoints {
		address := canonicalIP(e.spec.GetAddress())
		for _, port := range ports {
			number := e.number(port)
			if !validPort(number) && !e.isSocket() {
				r.report(diag.Problem{
					Severity: diag.Warning, Reason: diag.FieldInvalid, Code: diag.PartLeftOut, Object: e.origin.Ref(),
					Field: e.at + ".ports." + port.Name, Value: fmt.Sprint(number),
					Message: "the endpoint is left out at this port: use 1 to 65535",
				})
				continue
			}
			out = append(out, endpointPort{e, address, port, int(number)})
		}
	}
	return out
}

func (e endpoint) isSocket() bool { return strings.HasPrefix(e.spec.GetAddress(), unixScheme) }

// number returns the endpoint's own port number, else the service's. A socket has
// none.
func (e endpoint) number(port *Port) uint32 {
	if e.isSocket() {
		return 0
	}
	if own, ok := e.spec.GetPorts()[port.Name]; ok {
		return own
	}
	return uint32(port.TargetPort)
}

// weigh scales weights down if their sum exceeds Envoy's limit, and keeps their
// proportions. An endpoint without a weight counts as 1.
func (r *registry) weigh(o *schema.Object, endpoints []endpoint) {
	var sum uint64
	for _, e := range endpoints {
		sum += uint64(max(e.weight, 1))
	}
	if sum <= math.MaxUint32 {
		return
	}
	most := math.MaxUint32 - uint64(len(endpoints)) // None may become 0.
	for i, e := range endpoints {
		endpoints[i].weight = max(1, int(uint64(e.weight)*most/sum))
	}
	r.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.NotFollowed, Object: o.Key().Ref(), Field: "spec",
		Value:   fmt.Sprint(sum),
		Message: fmt.Sprintf("the weights of the endpoints are reduced in proportion: their sum may be at most %d", math.MaxUint32),
	})
}

// instances returns the instances of a service, one for each endpointPort.
func (r *registry) instances(svc *Service, endpointPorts []endpointPort) []*Instance {
	out := make([]*Instance, 0, len(endpointPorts))
	for _, p := range endpointPorts {
		i := &Instance{
			Service:      svc,
			Port:         p.port,
			Address:      p.address,
			EndpointPort: p.number,
			Labels:       p.labels,
			Zone:         p.spec.GetLocality(),
			Network:      p.network(),
			Weight:       p.weight,
			Account:      p.spec.GetServiceAccount(),
			Origin:       p.origin,
		}
		r.secure(i)
		out = append(out, i)
	}
	return out
}

// reportUnheeded reports settings of an endpoint that no proxy follows; at is the
// field of the endpoint in the object.
func (r *registry) reportUnheeded(e *networking.WorkloadEntry, labels Labels, object diag.Ref, at string, report func(diag.Problem)) {
	account := e.GetServiceAccount()
	if takesMutualTLS(labels) {
		account = ""
	}
	direct := e.GetNetwork()
	if len(r.settings.Networks[direct]) > 0 {
		direct = ""
	}
	for _, f := range []struct{ field, value, message string }{
		{"network", direct, "all callers connect to the endpoint directly: networks of the mesh settings has no gateways for it"},
		{"serviceAccount", account, "callers verify it only for endpoints with the label " + tlsModeLabel + ": " + tlsModeMutual},
	} {
		if f.value != "" {
			report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.NotFollowed, Object: object,
				Field: at + "." + f.field, Value: fmt.Sprintf("%q", f.value), Message: f.message,
			})
		}
	}
}
