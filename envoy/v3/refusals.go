package v3

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilot-api/pilot-api/internal/envoylimits/headerformat"
	"github.com/pilot-api/pilot-api/internal/envoylimits/re2"
)

// This file lists what Envoy 1.40 refuses although its declared constraints allow it. Each
// rule has a row in TestRefusals, where a real Envoy accepts a value just inside the rule
// and refuses one just outside.

// Refusals are the rules by the type of message, in no order.
func Refusals() []string {
	var out []string
	for _, r := range append(parts, resources...) {
		out = append(out, r.about)
	}
	return out
}

type refusal struct {
	about   string
	message protoreflect.FullName
	check   func(proto.Message) error
}

func rule[M proto.Message](about string, check func(M) error) refusal {
	var m M
	return refusal{about, m.ProtoReflect().Descriptor().FullName(), func(m proto.Message) error {
		if err := check(m.(M)); err != nil {
			return fmt.Errorf("%s: %w", about, err)
		}
		return nil
	}}
}

// parts are rules for messages at any place.
var parts = []refusal{
	rule("duration", duration),
	rule("regular expression", func(m *matcherv3.RegexMatcher) error { return re2.Check(m.GetRegex()) }),

	rule("header to write", headerToWrite),
	rule("headers to remove from a route", func(m *routev3.Route) error {
		return headersToRemove(m.GetRequestHeadersToRemove(), m.GetResponseHeadersToRemove())
	}),
	rule("headers to remove for a cluster", func(m *routev3.WeightedCluster_ClusterWeight) error {
		return headersToRemove(m.GetRequestHeadersToRemove(), m.GetResponseHeadersToRemove())
	}),
	rule("headers to remove from a virtual host", func(m *routev3.VirtualHost) error {
		return headersToRemove(m.GetRequestHeadersToRemove(), m.GetResponseHeadersToRemove())
	}),
	rule("route table", routeTable),
	rule("weighted clusters", weightedClusters),
	rule("mirror", mirror),
	rule("forwarding", forwarding),
	rule("retry back-off", backOff),
	rule("upgrades of a listener", func(m *hcmv3.HttpConnectionManager) error {
		return unlike("upgrade", m.GetUpgradeConfigs(), (*hcmv3.HttpConnectionManager_UpgradeConfig).GetUpgradeType)
	}),

	rule("outlier detection", outlier),
	rule("cluster", clusterHosts),
	rule("ring", ring),
	rule("table of Maglev", maglev),
	rule("server name asked for", serverName),
	rule("verification of a peer", peerVerification),
	rule("ALPN", alpn),
	rule("TLS of a server", serverCertificate),
	rule("ciphers", cipherSuites),

	rule("listener", listenerChains),
	rule("filter chain match", chainMatch),
	rule("address block", func(m *corev3.CidrRange) error { return address4or6(m.GetAddressPrefix()) }),
}

// resources are rules for messages that are resources.
var resources = []refusal{
	rule("endpoints", endpointAddresses),
}

var partRules, resourceRules = byName(parts), byName(resources)

func byName(rules []refusal) map[protoreflect.FullName]func(proto.Message) error {
	out := map[protoreflect.FullName]func(proto.Message) error{}
	for _, r := range rules {
		before, check := out[r.message], r.check
		if before != nil {
			check = func(m proto.Message) error { return cmp.Or(before(m), r.check(m)) }
		}
		out[r.message] = check
	}
	return out
}

// endOfTime is the first duration that Envoy cannot count in nanoseconds.
const endOfTime = 9_223_372_036 * time.Second

func duration(m *durationpb.Duration) error {
	if m.CheckValid() != nil || m.AsDuration() < 0 || m.AsDuration() >= endOfTime {
		return fmt.Errorf("must not be negative, nor %.0f s or more, found %d s", endOfTime.Seconds(), m.GetSeconds())
	}
	return nil
}

func headerToWrite(m *corev3.HeaderValueOption) error {
	if isProtected(m.GetHeader().GetKey()) {
		return fmt.Errorf("%q is no header that can be written; a rewrite changes the host", m.GetHeader().GetKey())
	}
	return headerformat.Check(m.GetHeader().GetValue())
}

func headersToRemove(lists ...[]string) error {
	for _, names := range lists {
		for _, name := range names {
			if isProtected(name) {
				return fmt.Errorf("%q is no header that can be removed", name)
			}
		}
	}
	return nil
}

// isProtected reports whether HTTP/2 uses the header for a part of the request itself.
func isProtected(header string) bool {
	return strings.HasPrefix(header, ":") || strings.EqualFold(header, "host")
}

// maxInlineBody is Envoy's bound for a body in a route table without a bound of its own.
const maxInlineBody = 4096

// routeTable checks that domains are unique. Envoy compares them without case.
func routeTable(m *routev3.RouteConfiguration) error {
	bound := maxInlineBody
	if own := m.GetMaxDirectResponseBodySizeBytes(); own != nil {
		bound = int(own.GetValue())
	}
	domains := map[string]bool{}
	for _, h := range m.GetVirtualHosts() {
		for _, d := range h.GetDomains() {
			d = strings.ToLower(d)
			if domains[d] {
				return fmt.Errorf("domain %q must occur only once", d)
			}
			domains[d] = true
		}
		for _, r := range h.GetRoutes() {
			if n := bodySize(r); n > bound {
				return fmt.Errorf("a body must not be longer than %d bytes, found %d", bound, n)
			}
		}
	}
	return nil
}

func bodySize(r *routev3.Route) int {
	body := r.GetDirectResponse().GetBody()
	return len(body.GetInlineBytes()) + len(body.GetInlineString())
}

func weightedClusters(m *routev3.WeightedCluster) error {
	var sum uint64
	for _, c := range m.GetClusters() {
		sum += uint64(c.GetWeight().GetValue())
	}
	if sum == 0 || sum > 1<<32-1 {
		return fmt.Errorf("weights must sum to 1 to %d, found %d", uint64(1<<32-1), sum)
	}
	return nil
}

func mirror(m *routev3.RouteAction_RequestMirrorPolicy) error {
	if (m.GetCluster() == "") == (m.GetClusterHeader() == "") {
		return errors.New("must have a cluster or a header that names it, and not both")
	}
	return nil
}

func forwarding(m *routev3.RouteAction) error {
	rewrites := 0
	for _, set := range []bool{m.GetPrefixRewrite() != "", m.GetRegexRewrite() != nil, m.GetPathRewritePolicy() != nil} {
		if set {
			rewrites++
		}
	}
	if rewrites > 1 {
		return errors.New("must rewrite the path in one way only")
	}
	return unlike("upgrade", m.GetUpgradeConfigs(), (*routev3.RouteAction_UpgradeConfig).GetUpgradeType)
}

// unlike returns an error if two names of a list differ only in case.
func unlike[T any](what string, list []T, name func(T) string) error {
	seen := map[string]bool{}
	for _, entry := range list {
		n := strings.ToLower(name(entry))
		if seen[n] {
			return fmt.Errorf("%s %q must occur only once", what, n)
		}
		seen[n] = true
	}
	return nil
}

func backOff(m *routev3.RetryPolicy_RetryBackOff) error {
	if m.GetMaxInterval() != nil && m.GetMaxInterval().AsDuration() < m.GetBaseInterval().AsDuration() {
		return fmt.Errorf("the longest pause must not be below the first, found %v and %v", m.GetMaxInterval().AsDuration(), m.GetBaseInterval().AsDuration())
	}
	return nil
}

// defaultEjection is the first ejection time if none is set.
const defaultEjection = 30 * time.Second

func outlier(m *clusterv3.OutlierDetection) error {
	if m.GetMaxEjectionTime() == nil {
		return nil // Envoy then takes the first when that is longer.
	}
	base := defaultEjection
	if m.GetBaseEjectionTime() != nil {
		base = m.GetBaseEjectionTime().AsDuration()
	}
	if longest := m.GetMaxEjectionTime().AsDuration(); longest < base {
		return fmt.Errorf("the longest ejection must not be below the first, found %v and %v", longest, base)
	}
	return nil
}

// clusterHosts checks that a cluster that resolves no names has addresses.
func clusterHosts(m *clusterv3.Cluster) error {
	switch m.GetType() {
	case clusterv3.Cluster_STATIC, clusterv3.Cluster_EDS:
		return endpointAddresses(m.GetLoadAssignment())
	case clusterv3.Cluster_LOGICAL_DNS:
		groups := m.GetLoadAssignment().GetEndpoints()
		if len(groups) != 1 || len(groups[0].GetLbEndpoints()) != 1 {
			return errors.New("a cluster of one name must have one endpoint")
		}
	}
	return nil
}

func endpointAddresses(m *endpointv3.ClusterLoadAssignment) error {
	for _, group := range m.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			if s := e.GetEndpoint().GetAddress().GetSocketAddress(); s != nil {
				if err := address4or6(s.GetAddress()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func address4or6(text string) error {
	if _, err := netip.ParseAddr(text); err != nil {
		return fmt.Errorf("must be an IP address, found %q", text)
	}
	return nil
}

// Envoy's bounds of a ring if none are set.
const (
	defaultRing    = 1024
	defaultMaxRing = 8 << 20
)

func ring(m *clusterv3.Cluster_RingHashLbConfig) error {
	least, most := uint64(defaultRing), uint64(defaultMaxRing)
	if own := m.GetMinimumRingSize(); own != nil {
		least = own.GetValue()
	}
	if own := m.GetMaximumRingSize(); own != nil {
		most = own.GetValue()
	}
	if least > most {
		return fmt.Errorf("the least size must not be above the most, found %d and %d", least, most)
	}
	return nil
}

func maglev(m *clusterv3.Cluster_MaglevLbConfig) error {
	if n := m.GetTableSize(); n != nil && !big.NewInt(int64(n.GetValue())).ProbablyPrime(0) {
		return fmt.Errorf("the size must be a prime, found %d", n.GetValue())
	}
	return nil
}

func serverName(m *tlsv3.UpstreamTlsContext) error {
	if strings.ContainsRune(m.GetSni(), 0) {
		return errors.New("must not contain a NUL byte")
	}
	return nil
}

// Of a context with authorities from elsewhere Envoy asks that when they are there.
func peerVerification(common *tlsv3.CommonTlsContext) error {
	m := common.GetValidationContext()
	//lint:ignore SA1019 Envoy still reads it.
	names := len(m.GetMatchTypedSubjectAltNames()) + len(m.GetMatchSubjectAltNames())
	switch {
	case m.GetTrustedCa() != nil: // Envoy does not look at system_root_certs.
		return nil
	case names > 0:
		return errors.New("names are checked only beside an authority")
	case m.GetCrl() != nil:
		return errors.New("revocations are looked up only beside an authority")
	}
	return nil
}

// alpn checks the length of the list of protocols: clients send one list of at most 65,535
// bytes, each entry with its length.
func alpn(m *tlsv3.CommonTlsContext) error {
	size := 0
	for _, p := range m.GetAlpnProtocols() {
		if len(p) > 255 {
			return fmt.Errorf("a protocol must not be longer than 255 bytes, found %d", len(p))
		}
		size += 1 + len(p)
	}
	if size > 1<<16-1 {
		return fmt.Errorf("the list must not be longer than %d bytes, found %d", 1<<16-1, size)
	}
	return nil
}

func serverCertificate(m *tlsv3.DownstreamTlsContext) error {
	common := m.GetCommonTlsContext()
	if len(common.GetTlsCertificates())+len(common.GetTlsCertificateSdsSecretConfigs()) == 0 && common.GetTlsCertificateProviderInstance() == nil {
		return errors.New("must have a certificate")
	}
	return nil
}
