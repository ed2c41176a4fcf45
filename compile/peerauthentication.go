package compile

import (
	"fmt"
	"slices"

	security "istio.io/api/security/v1beta1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// peerAuthentication is a PeerAuthentication as read from its object. mesh decides which
// instances have which mode.
type peerAuthentication struct {
	declared
	selector mesh.Labels
	strict   string // the first field that makes a port STRICT; "" for none
}

func readPeerAuthentication(_ *plan, of declared, spec *security.PeerAuthentication) *peerAuthentication {
	out := &peerAuthentication{declared: of, selector: spec.GetSelector().GetMatchLabels()}
	if spec.GetMtls().GetMode() == security.PeerAuthentication_MutualTLS_STRICT {
		out.strict = "spec.mtls.mode"
	}
	for port, tls := range spec.GetPortLevelMtls() {
		if field := fmt.Sprintf("spec.portLevelMtls.%d", port); tls.GetMode() == security.PeerAuthentication_MutualTLS_STRICT && (out.strict == "" || field < out.strict) {
			out.strict = field
		}
	}
	return out
}

// strictInstead is the spec of a PeerAuthentication that cannot be read: its workloads take
// mutual TLS only, as mesh has it.
func strictInstead(*schema.Object) any {
	return &security.PeerAuthentication{Mtls: &security.PeerAuthentication_MutualTLS{Mode: security.PeerAuthentication_MutualTLS_STRICT}}
}

// checkPeerAuthentication reports one that has no effect, and one that closes ports because
// workloads have no certificates.
func (p *plan) checkPeerAuthentication(pa *peerAuthentication) {
	for _, other := range p.peersIn.under(&p.reader, pa.ref.Namespace) {
		if other == pa {
			break
		}
		if len(pa.selector) == 0 && len(other.selector) == 0 {
			p.conflict(diag.WorkloadShared, pa.ref, "spec", fmt.Sprintf("it has no effect: %s is for all workloads of the namespace, and %s", other.ref, p.firstBecause()))
			return
		}
		if len(pa.selector) > 0 && other.selector.Equal(pa.selector) {
			p.conflict(diag.WorkloadShared, pa.ref, "spec.selector", fmt.Sprintf("it has no effect: %s selects the same workloads, and %s", other.ref, p.firstBecause()))
			return
		}
	}
	if pa.strict != "" && p.settings.WorkloadCertificates.None() {
		p.notHonoured(diag.TLSUnmet, pa.ref, pa.strict, "the ports of its workloads are closed: workloadCertificates of the mesh settings names no certificates, so no caller can prove an identity")
	}
	if len(pa.selector) > 0 && !p.selectsInstance(pa) {
		p.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.SelectsNothing, Object: pa.ref, Field: "spec.selector.matchLabels",
			Message: fmt.Sprintf("no instance of a service in namespace %s has these labels", pa.ref.Namespace),
		})
	}
}

func (p *plan) selectsInstance(pa *peerAuthentication) bool {
	return slices.ContainsFunc(p.registry.byNamespace.under(&p.reader, pa.ref.Namespace), func(svc *mesh.Service) bool {
		return slices.ContainsFunc(p.instances(svc), func(i *mesh.Instance) bool { return pa.selector.SubsetOf(i.Labels) })
	})
}

// The application protocols by which the proxies of a mesh know each other, as in Istio.
const (
	peerExchange = "istio-peer-exchange"
	peerProtocol = "istio"
	http2        = "h2"
	http11       = "http/1.1"
)

// peerProtocols are those of which a client of the mesh offers one.
var peerProtocols = []string{peerProtocol, peerExchange, "istio-http/1.0", "istio-http/1.1", "istio-h2"}

// offered returns the application protocols that a client of the mesh offers. Those of HTTP are
// for servers that know no other.
func offered(http, isHTTP2 bool) []string {
	switch {
	case isHTTP2:
		return []string{peerProtocol, http2}
	case http:
		return []string{peerProtocol, http11}
	}
	return []string{peerExchange, peerProtocol}
}

// identityPrefix is how the names of all workloads of the mesh begin.
func identityPrefix(s *mesh.Settings) string { return "spiffe://" + s.SPIFFETrustDomain() + "/" }

// secured returns a listener of the workload that takes connections as the PeerAuthentication
// of the instance says.
func (c *writer) secured(l *ir.Listener, i *mesh.Instance) *ir.Listener {
	mode, policy := i.Peer.At(l.Port)
	if policy != nil {
		l.Origins = append(slices.Clip(l.Origins), policy.Key().Ref())
	}
	switch lacks := c.plan.settings.WorkloadCertificates.None(); {
	case mode == mesh.PeerStrict && lacks:
		l.HTTP, l.TCP = nil, &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole(ir.Nobody)}}}
		c.put(blackHole)
	case mode == mesh.PeerStrict:
		l.TLS = c.peerTLS(l.HTTP != nil)
	case mode == mesh.PeerPermissive && !lacks && !i.Port.ServerFirst:
		l.Chains = []*ir.FilterChain{
			{Transport: ir.OverTLS, ALPN: peerProtocols, TLS: c.peerTLS(l.HTTP != nil), HTTP: l.HTTP, TCP: l.TCP, Origins: l.Origins},
			{HTTP: l.HTTP, TCP: l.TCP, Origins: l.Origins},
		}
		if l.HTTP != nil {
			l.Chains[1].Transport = ir.PlainText
		}
		l.HTTP, l.TCP = nil, nil
	}
	return l
}

// peerTLS returns the TLS by which a workload takes connections of others.
func (c *writer) peerTLS(http bool) *ir.ServerTLS {
	own := filesOfWorkloads(c.plan.settings.WorkloadCertificates)
	out := &ir.ServerTLS{
		CertificateFile: own.CertificateFile, KeyFile: own.KeyFile, SecretName: own.secret, SDS: own.sds,
		Client: &ir.ClientCertificate{CAFile: own.CAFile, CASecretName: own.caSecret, CRLFile: own.CRLFile, URIPrefix: identityPrefix(c.plan.settings)},
	}
	if http {
		out.ALPN = []string{http2, http11}
	}
	return out
}

// peers are what callers know of the instances of a target that take mutual TLS.
type peers struct {
	any bool
	// names are those that certificates may have; none for all of the mesh.
	names []string
}

// peersOf returns the peers of a target.
func (rd *reader) peersOf(t target) *peers {
	out, unnamed := &peers{}, false
	for _, i := range rd.instancesOf(t) {
		if !i.MutualTLS {
			continue
		}
		out.any = true
		if i.Account == "" {
			unnamed = true
			continue
		}
		out.names = append(out.names, fmt.Sprintf("%sns/%s/sa/%s", identityPrefix(rd.settings), i.Origin.Namespace, i.Account))
	}
	slices.Sort(out.names)
	if out.names = slices.Compact(out.names); unnamed {
		out.names = nil
	}
	return out
}

// addMutualTLS sets how callers reach the instances that take mutual TLS. Rules about TLS come
// first.
func (rd *reader) addMutualTLS(out *clusterPart, t target) {
	own, svc := rd.settings.WorkloadCertificates, t.service
	if own.None() || svc == nil || svc.External || svc.Egress || out.decidesTLS || out.cluster.EndpointKey == ir.Nobody {
		return
	}
	found := rd.peers.Get(rd.r, t)
	if !found.any {
		return
	}
	tls := rd.namingRoots(filesOfWorkloads(own)).clientTLS()
	tls.SNI = fmt.Sprintf("outbound_.%d_._.%s", t.port.Number, t.host)
	tls.ALPN = offered(rd.routesHTTP(svc, t.port), out.cluster.HTTP2)
	if tls.SubjectAltNames = found.names; len(svc.SubjectAltNames) > 0 {
		tls.SubjectAltNames = svc.SubjectAltNames
	}
	if len(tls.SubjectAltNames) == 0 {
		tls.URIPrefix = identityPrefix(rd.settings)
	}
	out.cluster.MutualTLS = tls
}
