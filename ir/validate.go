package ir

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
)

// Validate checks the promises of this package: every name refers to something,
// names are unique, exactly one of several alternatives is set, numbers are in
// range. The error joins all violations, each with its place. Back-ends encode a
// valid Config so that Envoy accepts it. Validate does not check what a certain
// Envoy version cannot express.
func Validate(c *Config) error {
	var errs []error
	if c.Delay <= 0 || c.RouteDelay <= 0 {
		errs = append(errs, fmt.Errorf("delays: must be above 0, found %v and %v for routes", c.Delay, c.RouteDelay))
	}
	if _, problems := Close(c); len(problems) > 0 {
		errs = append(errs, problems)
	}
	return errors.Join(errs...)
}

var (
	errNoName   = errors.New("must have a name")
	errTaken    = errors.New("must occur only once")
	errNoDomain = errors.New("must have a domain")
	errFinalDot = errors.New("must have no final dot: without it the name means the same host")
	errControl  = errors.New("must have no control characters")
)

// faults collects what is wrong with one part.
type faults []error

func (f *faults) require(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

func (f *faults) err() error {
	switch len(*f) {
	case 0:
		return nil
	case 1:
		return (*f)[0]
	}
	return fmt.Errorf("%w, and %d more", (*f)[0], len(*f)-1)
}

func checkCluster(c *Cluster) error {
	var f faults
	f.require(c.ConnectTimeout >= 0, "connect timeout must not be negative, found %v", c.ConnectTimeout)
	switch c.Type {
	case Registry:
		f.require(c.EndpointKey != "", "must have a key to ask endpoints by")
	case StaticHosts, StrictDNS:
		f.hosts(c)
	case LogicalDNS:
		f.require(len(c.Hosts) == 1, "looks up one name and must have one host, found %d", len(c.Hosts))
		f.hosts(c)
	case OriginalDestination:
		f.require(len(c.Hosts) == 0, "goes where the connection went and must have no hosts, found %d", len(c.Hosts))
	default:
		f.require(false, "type must be registry, static, strict-dns, logical-dns or original-destination, found %q", c.Type)
	}
	f.connections(c.Connections)
	f.balancing(c)
	f.localities(c)
	f.healthCheck(c)
	f.require(c.DestinationPort == 0 || c.Type == OriginalDestination && validPort(c.DestinationPort),
		"a port in place of the connection's must be 1 to 65535, where that goes on, found %d", c.DestinationPort)
	f.clientTLS(c.TLS)
	f.clientTLS(c.MutualTLS)
	f.require(c.TLS == nil || c.MutualTLS == nil, "must use TLS to all endpoints or to some, and not both")
	return f.err()
}

func (f *faults) clientTLS(t *ClientTLS) {
	if t == nil {
		return
	}
	f.require((t.CertificateFile == "") == (t.KeyFile == ""),
		"TLS must have both a certificate and a key file, or neither, found %q and %q", t.CertificateFile, t.KeyFile)
	f.require(t.SecretName == "" || t.CertificateFile == "", "TLS must show a certificate from files or a secret, and not both, found %q and %q", t.CertificateFile, t.SecretName)
	f.require(t.SDS == LocalSDS{} || t.SecretName != "" && t.CASecretName != "", "TLS with the secrets of a workload must show its certificate and verify others")
	f.require(t.CASecretName == "" || t.CAFile == "", "TLS must have authorities from a file or a secret, and not both, found %q and %q", t.CAFile, t.CASecretName)
	f.require(t.Verifies() || len(t.SubjectAltNames) == 0 && t.URIPrefix == "" && !t.AutoSAN && t.CRLFile == "",
		"names and revocations in TLS must go with authorities")
}

func (f *faults) hosts(c *Cluster) {
	seen := map[HostPort]bool{}
	for _, h := range c.Hosts {
		at := h.Address()
		f.require(!seen[at], "host %v must occur only once", at)
		seen[at] = true
		if path, ok := h.Socket(); ok {
			f.require(c.Type == StaticHosts && h.Port == 0 && isSocket(path), "a socket must be a path or an abstract name, without a port and in a list of hosts, found %v", at)
			continue
		}
		f.require(validPort(h.Port), "port of a host must be 1 to 65535, found %v", at)
		f.require(h.Priority >= 0 && h.Priority <= maxPriority && h.Share >= 0, "host %v must have a priority of 0 to %d and no negative share", at, maxPriority)
		f.require(h.Weight >= 0 && h.Weight <= math.MaxUint32, "weight of host %v must be 0 to %d, found %d", at, math.MaxUint32, h.Weight)
		if c.Type == StaticHosts {
			f.require(isAddress(h.Host), "host must be an IP address, found %q", h.Host)
		}
	}
}

// checkListener checks everything but the routes and chains.
func (k *closer) checkListener(l *Listener) error {
	var f faults
	f.require(validPort(l.Port), "port must be 1 to 65535")
	f.require(l.IP == "" || isAddress(l.IP), "must have an IP address, found %q", l.IP)
	f.require(count(l.UseOriginalDst && l.TCP == nil, l.HTTP != nil, l.TCP != nil, len(l.Chains) > 0) == 1 && (!l.UseOriginalDst || l.HTTP == nil),
		"must be exactly one of hand-off, HTTP, TCP and chains, or TCP for what is not handed off")
	k.http(&f, l.HTTP)
	k.connections(&f, l.TCP)
	f.serverTLS(l.TLS)
	f.require(l.TLS == nil || len(l.Chains) == 0, "must leave TLS to its chains")
	return f.err()
}

func (k *closer) checkChain(c *FilterChain) error {
	var f faults
	f.require(count(c.HTTP != nil, c.TCP != nil) == 1, "must be exactly one of HTTP and TCP")
	k.http(&f, c.HTTP)
	k.connections(&f, c.TCP)
	f.serverTLS(c.TLS)
	f.require(len(c.ALPN) == 0 || c.Transport == OverTLS, "application protocols must go with TLS")
	f.require(c.TLS == nil || c.Transport != PlainText, "plain text must have no TLS")
	if c.TCP != nil && len(c.ServerNames) > 0 {
		f.require(!slices.ContainsFunc(c.TCP.Routes, func(r TCPRoute) bool { return len(r.ServerNames) > 0 }),
			"must have server names itself or in its routes, and not both")
	}
	return f.err()
}

func (k *closer) http(f *faults, h *HTTPListener) {
	if h == nil {
		return
	}
	f.require((h.Inline != nil) != (h.Table != ""), "must have a table inline or the name of one, and not both")
	f.require(h.Inline != nil || k.tables(h.Table), "must name one of the route tables, found %q", h.Table)
}

func (k *closer) connections(f *faults, t *TCPListener) {
	if t == nil {
		return
	}
	for i, r := range t.Routes {
		k.shares(f, r.Clusters)
		f.require(r.Port == 0 || validPort(r.Port) && (i == 0 || t.Routes[i-1].Port != 0),
			"a route for a port must have one from 1 to 65535 and stand before those for any, found %d", r.Port)
	}
}

func (f *faults) serverTLS(t *ServerTLS) {
	if t == nil {
		return
	}
	for _, pair := range append([]KeyPair{{t.CertificateFile, t.KeyFile, t.SecretName}}, t.Others...) {
		files := pair.CertificateFile != "" && pair.KeyFile != ""
		f.require(files && pair.SecretName == "" || pair.SecretName != "" && pair.CertificateFile == "" && pair.KeyFile == "",
			"TLS must have a certificate and a key file, or a secret, found %q, %q and %q", pair.CertificateFile, pair.KeyFile, pair.SecretName)
	}
	f.require(t.MinVersion == "" || t.MaxVersion == "" || t.MinVersion <= t.MaxVersion,
		"TLS must not end before it begins, found %s to %s", t.MinVersion, t.MaxVersion)
	f.require(t.SDS == LocalSDS{} || t.SecretName != "" && t.Client != nil && t.Client.CASecretName != "",
		"TLS with the secrets of a workload must show its certificate and verify others")
	if c := t.Client; c != nil {
		f.require((c.CAFile == "") != (c.CASecretName == ""), "certificates of clients must have an authority")
	}
}

func (k *closer) knows(f *faults, at, cluster string) {
	f.require(k.clusters(cluster), "%smust name one of the clusters, found %q", at, cluster)
}

// isSocket reports whether path is valid in a socket address: at most 107 bytes.
func isSocket(path string) bool {
	return len(path) > 1 && len(path) <= 107 && (path[0] == '/' || path[0] == '@') && !strings.ContainsRune(path, 0)
}

func validPort(n int) bool { return n >= 1 && n <= 65535 }

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
