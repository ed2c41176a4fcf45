package compile

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// sidecar is a Sidecar as read from its object.
type sidecar struct {
	declared
	selector mesh.Labels       // empty if it applies to all that no other selects
	egress   []egressListener  // empty for all hosts at all ports
	ingress  []ingressListener // empty for the ports of the workload's services
	opens    bool              // whether ingress decides which ports are open, even if it is empty
	unknown  mesh.OutboundMode // "" for the default of the mesh
	onDemand mesh.OnDemandMode // "" for that of the mesh
}

// egressListener says which hosts are visible at a port.
type egressListener struct {
	port    int // 0 for every port without a listener of its own
	imports []imported
	bind    string // address at which the proxy opens the port; "" for captured calls
}

// imported is a pattern for hosts of a namespace: "*" is any namespace, "." that of
// the callers, which importing fills in.
type imported struct{ namespace, host string }

// ingressListener is an open port of the workload.
type ingressListener struct {
	port     int
	protocol mesh.Protocol
	bind     string // "" for the proxy's own address
	binds    bool   // whether the proxy opens the port
	endpoint string // host:port or unix://path
	refused  bool   // whether proxies refuse to connect to the endpoint
}

func readSidecar(p *plan, of declared, spec *networking.Sidecar) *sidecar {
	sc := &sidecar{declared: of, selector: spec.GetWorkloadSelector().GetLabels(), opens: len(spec.GetIngress()) > 0}
	sc.onDemand = mesh.OnDemandMode(of.object.Meta.Annotations[schema.OnDemandAnnotation])
	if why := p.settings.WithoutOnDemand(); sc.onDemand == mesh.OnDemandHosts && why != "" {
		p.notHonoured(diag.PartLeftOut, of.ref, "metadata.annotations["+schema.OnDemandAnnotation+"]", "its proxies have all hosts, because the mesh settings exclude hosts on demand: "+why)
		sc.onDemand = mesh.OnDemandOff
	}
	if policy := spec.GetOutboundTrafficPolicy(); policy != nil {
		sc.unknown = mesh.RegistryOnly
		if policy.GetMode() == networking.OutboundTrafficPolicy_ALLOW_ANY && policy.GetEgressProxy() == nil {
			sc.unknown = mesh.AllowAny
		}
	}
	for i, e := range spec.GetEgress() {
		sc.egress = append(sc.egress, p.readEgress(of, i, e))
	}
	for i, in := range spec.GetIngress() {
		if l, ok := p.readIngress(of, i, in); ok {
			sc.ingress = append(sc.ingress, l)
		}
	}
	return sc
}

// readEgress returns a listener without imports if the listener is invalid.
func (rp *reporter) readEgress(of declared, i int, e *networking.IstioEgressListener) egressListener {
	out := egressListener{port: int(e.GetPort().GetNumber())}
	if strings.HasPrefix(e.GetBind(), unixScheme) || e.GetPort() != nil && out.port == 0 {
		out.port = -1
		return out
	}
	if out.port > 0 && e.GetCaptureMode() == networking.CaptureMode_NONE {
		out.bind = "127.0.0.1"
		if e.GetBind() != "" {
			out.bind = e.GetBind()
		}
	}
	for j, host := range e.GetHosts() {
		namespace, name, ok := strings.Cut(host, "/")
		if !ok {
			rp.notHonoured(diag.ImportsNothing, of.ref, fmt.Sprintf("spec.egress[%d].hosts[%d]", i, j), "it imports nothing: use NAMESPACE/HOST")
			continue
		}
		if namespace != "~" {
			out.imports = append(out.imports, imported{namespace, strings.ToLower(name)})
		}
	}
	return out
}

const unixScheme = "unix://"

// readIngress returns false for an invalid listener.
func (p *plan) readIngress(of declared, i int, in *networking.IstioIngressListener) (ingressListener, bool) {
	protocol, known := mesh.ParseProtocol(in.GetPort().GetProtocol())
	out := ingressListener{
		port: int(in.GetPort().GetNumber()), protocol: protocol, bind: in.GetBind(),
		binds: in.GetCaptureMode() == networking.CaptureMode_NONE, endpoint: in.GetDefaultEndpoint(),
	}
	if out.endpoint == "" {
		out.endpoint = net.JoinHostPort("127.0.0.1", strconv.Itoa(out.port))
	}
	if !known || !canListen(out) {
		p.notHonoured(diag.PartLeftOut, of.ref, fmt.Sprintf("spec.ingress[%d]", i), "the listener is left out: it must have a port, a protocol and, if it has a defaultEndpoint, a valid one")
		return out, false
	}
	if strings.HasPrefix(out.endpoint, unixScheme) {
		if reason := p.settings.RefusesSocket(out.endpoint); reason != "" {
			out.refused = true
			p.notHonoured(diag.PartLeftOut, of.ref, fmt.Sprintf("spec.ingress[%d].defaultEndpoint", i), "calls to the port fail: "+reason)
		}
	}
	return out, in.GetTls() == nil // Validation reports a listener with TLS.
}

func canListen(in ingressListener) bool {
	if in.port < 1 || in.port > 65535 {
		return false
	}
	if strings.HasPrefix(in.endpoint, unixScheme) {
		return true
	}
	host, port, err := net.SplitHostPort(in.endpoint)
	number, notNumber := strconv.Atoi(port)
	return err == nil && notNumber == nil && number >= 1 && number <= 65535 && net.ParseIP(host) != nil
}

// covers reports whether a host is one of those imported.
func (i imported) covers(host string) bool {
	return i.host == "*" || i.host == host || strings.HasPrefix(i.host, "*") && strings.HasSuffix(host, i.host[1:])
}

func (i imported) in(namespace string) bool {
	return i.namespace == "*" || i.namespace == namespace
}

// readBy replaces a dot with the namespace of the callers, if it is known.
func (i imported) readBy(callers string) imported {
	if i.namespace == "." && callers != "" {
		i.namespace = callers
	}
	return i
}

// imports is a Sidecar as callers in a namespace follow it.
type imports struct {
	sidecar *sidecar
	callers string // "" if unknown
}

// importing replaces each dot with the namespace of the callers, as results shared
// by callers of several namespaces do not know the namespace.
func importing(_ *plan, key imports) *sidecar {
	out := *key.sidecar
	out.egress = slices.Clone(out.egress)
	for i := range out.egress {
		l := &out.egress[i]
		l.imports = slices.Clone(l.imports)
		for j := range l.imports {
			l.imports[j] = l.imports[j].readBy(key.callers)
		}
	}
	return &out
}

// at returns the listener for a port, or nil.
func (sc *sidecar) at(port int) *egressListener {
	for i := range sc.egress {
		if sc.egress[i].port == port {
			return &sc.egress[i]
		}
	}
	last := len(sc.egress) - 1
	if last >= 0 && sc.egress[last].port == 0 {
		return &sc.egress[last]
	}
	return nil
}

// bindsAt returns the address at which proxies of the scope open a port for calls,
// or "" if calls are captured.
func (s scope) bindsAt(port int) string {
	if !s.sidecar.limits() {
		return ""
	}
	if l := s.sidecar.at(port); l != nil {
		return l.bind
	}
	return ""
}

// limits reports whether it limits which hosts are visible. sc may be nil.
func (sc *sidecar) limits() bool { return sc != nil && len(sc.egress) > 0 }

// knows reports whether proxies that follow it see a service at a port.
func (sc *sidecar) knows(svc *mesh.Service, port int) bool {
	if !sc.limits() {
		return true
	}
	l := sc.at(port)
	return l != nil && slices.ContainsFunc(l.imports, func(i imported) bool {
		return i.in(svc.Namespace) && i.covers(strings.ToLower(svc.Hostname))
	})
}

// follows reports whether proxies that follow it also follow a rule of a namespace
// for some hosts, which may be wildcards.
func (sc *sidecar) follows(namespace string, hosts []string) bool {
	if !sc.limits() {
		return true
	}
	for i := range sc.imported() {
		if i.in(namespace) && slices.ContainsFunc(hosts, func(host string) bool {
			return i.covers(host) || imported{host: host}.covers(i.host)
		}) {
			return true
		}
	}
	return false
}

// imported returns all imports.
func (sc *sidecar) imported() func(yield func(imported) bool) {
	return func(yield func(imported) bool) {
		for _, l := range sc.egress {
			for _, i := range l.imports {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// sidecarOf returns the Sidecar that a proxy follows: the first that selects its
// workload, else the first of its namespace without a selector, else that of the
// root namespace. Routers and ingresses follow none.
func (p *plan) sidecarOf(who *caller) *sidecar {
	if who.role != mesh.Sidecar {
		return nil
	}
	namespace := p.forDomain(who.domain).namespace
	if sc := p.sidecarFor(who, namespace); sc != nil {
		return p.importing.Get(p.r, imports{sc, namespace})
	}
	return nil
}

// onDemand returns what the proxies that follow a Sidecar, or none, learn on demand.
func (m *model) onDemand(sc *sidecar) mesh.OnDemandMode {
	if sc != nil && (sc.onDemand == mesh.OnDemandHosts || sc.onDemand == mesh.OnDemandOff) {
		return sc.onDemand
	}
	return m.settings.OnDemand
}

// sidecarFor returns that Sidecar as written.
func (p *plan) sidecarFor(who *caller, namespace string) *sidecar {
	var selecting []*sidecar
	for _, sc := range p.sidecarsIn.under(&p.reader, namespace) {
		if len(sc.selector) > 0 && who.bears(sc.selector) {
			selecting = append(selecting, sc)
		}
	}
	for i, sc := range selecting {
		if i > 0 {
			p.conflict(diag.WorkloadShared, sc.ref, "spec.workloadSelector", fmt.Sprintf("workloads that %s also selects follow that object, which %s", selecting[0].ref, p.firstBecause()))
		}
	}
	if len(selecting) > 0 {
		return selecting[0]
	}
	if sc := p.forAll(namespace); sc != nil {
		return sc
	}
	return p.forAll(p.settings.RootNamespace)
}

// forAll returns the first Sidecar without a selector in a namespace, or nil.
func (rd *reader) forAll(namespace string) *sidecar {
	for _, sc := range rd.sidecarsIn.under(rd, namespace) {
		if len(sc.selector) == 0 {
			return sc
		}
	}
	return nil
}

// checkSidecar reports a Sidecar that no proxy follows, and imports of hosts that
// do not exist.
func (p *plan) checkSidecar(sc *sidecar) {
	if first := p.forAll(sc.ref.Namespace); len(sc.selector) == 0 && first != sc {
		p.conflict(diag.WorkloadShared, sc.ref, "spec", fmt.Sprintf("it has no effect: %s is for all workloads of the namespace, and %s", first.ref, p.firstBecause()))
	}
	for i := range sc.imported() {
		p.checkImport(sc, i)
	}
}

// checkImport reports an import of hosts that do not exist. It skips imports that
// need not match anything: a dot in a Sidecar of the root namespace, whose callers
// are in any namespace; all hosts of the Sidecar's own or the root namespace; and
// wildcards in all namespaces, where hosts may appear later.
func (p *plan) checkImport(sc *sidecar, i imported) {
	home, root := sc.ref.Namespace, p.settings.RootNamespace
	from := i.readBy(home)
	there := func(svc *mesh.Service) bool {
		return from.in(svc.Namespace) && from.covers(strings.ToLower(svc.Hostname)) && svc.VisibleIn(home)
	}
	found := true
	switch {
	case i.namespace == "." && home == root:
	case !strings.HasPrefix(i.host, "*"):
		found = slices.ContainsFunc(p.registry.byHost.under(&p.reader, i.host), there) || p.egressHost.Get(p.r, i.host) != nil
	case from.namespace != "*" && (i.host != "*" || from.namespace != home && from.namespace != root):
		found = slices.ContainsFunc(p.registry.byNamespace.under(&p.reader, from.namespace), there)
	}
	if !found {
		p.notHonoured(diag.ImportsNothing, sc.ref, "spec.egress", fmt.Sprintf("it imports nothing by %s/%s: no object of that namespace declares %s for namespace %s", i.namespace, i.host, i.what(), home))
	}
}

// what describes the import in words.
func (i imported) what() string {
	if strings.HasPrefix(i.host, "*") {
		return "such a host"
	}
	return "the host"
}

// candidates returns the services of the registry that a Sidecar may import,
// without visiting all others.
func (rd *reader) candidates(sc *sidecar) []*mesh.Service {
	var out []*mesh.Service
	seen := map[imported]bool{}
	for i := range sc.imported() {
		named := !strings.HasPrefix(i.host, "*")
		if named {
			i.namespace = ""
		} else {
			i.host = "*"
		}
		if seen[i] {
			continue
		}
		seen[i] = true
		switch {
		case named:
			out = append(out, rd.registry.byHost.under(rd, i.host)...)
		case i.namespace == "*":
			return rd.services()
		default:
			out = append(out, rd.registry.byNamespace.under(rd, i.namespace)...)
		}
	}
	slices.SortStableFunc(out, mesh.CompareServices)
	return slices.Compact(out)
}
