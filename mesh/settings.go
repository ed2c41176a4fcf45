package mesh

import (
	"time"
)

// Settings hold for the whole mesh (--mesh-config). Field names in the file
// are those of Pilot's mesh configuration.
type Settings struct {
	ProxyListenPort       int           // 0: only the HTTP proxy port is served
	ProxyHTTPPort         int           // 0: none
	ConnectTimeout        time.Duration // 1 ms at least
	RDSRefreshDelay       time.Duration
	DiscoveryRefreshDelay time.Duration
	EnableTracing         bool
	AccessLogFile         string
	// ManagementPorts are open at every workload beside those of its
	// services, for probes and the like; names and numbers are unique.
	ManagementPorts []*Port
	// IngressCertificates by the secret that IngressRules name. A secret
	// that is not here has the files of DefaultIngressCertificate.
	IngressCertificates map[string]Certificate
	// V1Compatibility says which accidents of Pilot are kept.
	V1Compatibility V1Compatibility
	// Domain of the mesh, "cluster.local": what short service names end in,
	// after the namespace and "svc". It comes from a flag, not from the file.
	Domain string
}

// Certificate is a pair of files on the proxy's machine.
type Certificate struct{ CertificateFile, KeyFile string }

// DefaultIngressCertificate is where the ingress of Istio 0.x had its pair.
var DefaultIngressCertificate = Certificate{
	CertificateFile: "/etc/istio/ingress-certs/tls.crt",
	KeyFile:         "/etc/istio/ingress-certs/tls.key",
}

// IngressCertificate is the pair for a secret.
func (s *Settings) IngressCertificate(secret string) Certificate {
	if c, ok := s.IngressCertificates[secret]; ok {
		return c
	}
	return DefaultIngressCertificate
}

// DefaultSettings is what a mesh without a file runs with: Pilot's defaults,
// and a discovery delay of five seconds.
func DefaultSettings() *Settings {
	return &Settings{
		ProxyListenPort:       15001,
		ConnectTimeout:        time.Second,
		RDSRefreshDelay:       time.Second,
		DiscoveryRefreshDelay: 5 * time.Second,
		EnableTracing:         true,
		AccessLogFile:         "/dev/stdout",
		V1Compatibility:       AsPilot(),
		Domain:                "cluster.local",
	}
}
