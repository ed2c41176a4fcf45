package evaluator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/mesh"
)

// clientTLS has every field of the TLS settings towards endpoints, and what can
// be seen of it in the cluster; nil where it cannot be met.
var clientTLS = map[string]struct {
	tls string
	met func(*evaluator.TLS) bool
}{
	"mode":              {`mode: ISTIO_MUTUAL`, func(t *evaluator.TLS) bool { return t.CertificateFile == "own" && t.CAFile == "mesh" }},
	"clientCertificate": {`mode: MUTUAL, clientCertificate: c, privateKey: k, caCertificates: ca`, func(t *evaluator.TLS) bool { return t.CertificateFile == "c" }},
	"privateKey":        {`mode: MUTUAL, clientCertificate: c, privateKey: k, caCertificates: ca`, func(t *evaluator.TLS) bool { return t.KeyFile == "k" }},
	"caCertificates":    {`mode: SIMPLE, caCertificates: ca`, func(t *evaluator.TLS) bool { return t.CAFile == "ca" }},
	"subjectAltNames": {`mode: SIMPLE, subjectAltNames: [a.example]`, func(t *evaluator.TLS) bool {
		return t.CAFile == "system" && slices.Equal(t.SubjectAltNames, []string{"a.example"})
	}},
	"sni": {`mode: SIMPLE, sni: b.example`, func(t *evaluator.TLS) bool {
		return t.SNI == "b.example" && slices.Equal(t.SubjectAltNames, []string{"b.example"})
	}},
	"insecureSkipVerify": {`mode: SIMPLE, insecureSkipVerify: true`, func(t *evaluator.TLS) bool { return t.CAFile == "" }},
	"credentialName":     {`mode: SIMPLE, credentialName: known`, func(t *evaluator.TLS) bool { return t.CAFile == "known" }},
	"caCrl":              {`mode: SIMPLE, caCertificates: ca, caCrl: crl`, func(t *evaluator.TLS) bool { return t.CRLFile == "crl" }},
}

// withFiles are settings by which TLS can be met.
func withFiles() *mesh.Settings {
	s := mesh.DefaultSettings()
	s.SystemRootsFile = "system"
	s.WorkloadCertificates.Certificate = mesh.Certificate{CertificateFile: "own", KeyFile: "key", CAFile: "mesh"}
	s.ClientCertificates = map[string]mesh.Certificate{"known": {CAFile: "known"}}
	return s
}

// withoutFiles are settings by which only what an object names itself can be met.
func withoutFiles() *mesh.Settings {
	s := mesh.DefaultSettings()
	s.SystemRootsFile = ""
	return s
}

// TestClientTLSFailsClosed: what cannot be met leaves the cluster without
// endpoints, and whoever writes it is warned. Nothing goes out in plain text.
func TestClientTLSFailsClosed(t *testing.T) {
	fields := map[string]bool{}
	leaves((&networking.ClientTLSSettings{}).ProtoReflect().Descriptor(), "", fields)
	for field := range fields {
		if _, ok := clientTLS[field]; !ok {
			t.Errorf("tls.%s is new: say here what becomes of it", field)
		}
	}
	for _, where := range []string{
		"trafficPolicy: {tls: {%s}}",
		"trafficPolicy: {portLevelSettings: [{port: {number: 80}, tls: {%s}}]}",
	} {
		for field, tc := range clientTLS {
			t.Run(field, func(t *testing.T) {
				testCluster(t, withFiles(), fmt.Sprintf(where, tc.tls), tc.met)
			})
		}
		for _, tls := range []string{
			"mode: SIMPLE", "mode: MUTUAL, clientCertificate: c, privateKey: k", "mode: ISTIO_MUTUAL", "mode: SIMPLE, credentialName: known",
			"mode: MUTUAL, credentialName: known", "mode: SIMPLE, insecureSkipVerify: true, caCrl: crl",
		} {
			testCluster(t, withoutFiles(), fmt.Sprintf(where, tls), nil)
		}
		testCluster(t, withFiles(), fmt.Sprintf(where, "mode: MUTUAL, credentialName: known"), nil)
	}
	for _, way := range []string{
		"trafficPolicy: {tunnel: {targetHost: b.example, targetPort: 80}}",
		"trafficPolicy: {proxyProtocol: {version: V2}}",
	} {
		testCluster(t, withFiles(), way, nil)
	}
}

// clusterOf is the one cluster of that name, whatever is told of its TLS behind.
func clusterOf(t *testing.T, p *evaluator.Proxy, name string) *evaluator.Cluster {
	t.Helper()
	var found []*evaluator.Cluster
	for full, c := range p.Clusters {
		if full == name || strings.HasPrefix(full, name+"|tls=") {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d clusters are called %s", len(found), name)
	}
	return found[0]
}

// asTheyCome has workloads take plain text only: how they take mutual TLS is not what is tested.
const asTheyCome = `apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: plain, namespace: istio-system}
spec: {mtls: {mode: DISABLE}}
`

func testCluster(t *testing.T, settings *mesh.Settings, policy string, met func(*evaluator.TLS) bool) {
	t.Helper()
	objs := decoded(t, closedRegistry+asTheyCome+"---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: d}\nspec:\n  host: a.default.svc.cluster.local\n  "+policy+"\n")
	s := spellWith(t, settings, "sidecar~10.1.0.9~caller.default~default.svc.cluster.local", objs)
	for version, p := range map[string]*evaluator.Proxy{"v1": s.v1, "v3": s.v3} {
		c := clusterOf(t, p, "out.a.default.svc.cluster.local|http")
		switch {
		case len(c.Endpoints) == 0 && (met == nil || version == "v1" && len(s.complaints) > 0):
		case met == nil || c.TLS == nil || !met(c.TLS):
			t.Errorf("%s: %s is neither met nor closed: TLS %+v, endpoints %v", version, policy, c.TLS, c.Endpoints)
		}
	}
	rule := objs[len(objs)-1].Key().Ref()
	if met == nil && !slices.ContainsFunc(s.problems, func(p diag.Problem) bool { return p.Object == rule }) {
		t.Errorf("%s: closed, and the object has no problem", policy)
	}
}

const ownPair = "serverCertificate: c, privateKey: k"

// serverTLS has every field of the TLS settings of a gateway, and what can be
// seen of it in the listener; nil where it cannot be met.
var serverTLS = map[string]struct {
	tls string
	met func(evaluator.Traits) bool
}{
	"httpsRedirect":                     {`mode: SIMPLE, httpsRedirect: true, ` + ownPair, withCertificate}, // for plain text
	"mode":                              {`mode: PASSTHROUGH`, nil},
	"serverCertificate":                 {`mode: SIMPLE, ` + ownPair, withCertificate},
	"privateKey":                        {`mode: SIMPLE, ` + ownPair, withCertificate},
	"caCertificates":                    {`mode: MUTUAL, caCertificates: ca, ` + ownPair, verifying},
	"caCrl":                             {`mode: MUTUAL, caCertificates: ca, caCrl: crl, ` + ownPair, asking(`filename:"crl"`)},
	"credentialName":                    {`mode: SIMPLE, credentialName: nowhere`, nil},
	"credentialNames":                   {`mode: SIMPLE, credentialNames: [x, y]`, nil},
	"caCertCredentialName":              {`mode: MUTUAL, caCertificates: ca, caCertCredentialName: x, ` + ownPair, nil},
	"tlsCertificates.serverCertificate": {`mode: SIMPLE, tlsCertificates: [{` + ownPair + `}, {serverCertificate: d, privateKey: l}]`, asking(`filename:"d"`)},
	"tlsCertificates.privateKey":        {`mode: SIMPLE, tlsCertificates: [{` + ownPair + `}, {serverCertificate: d, privateKey: l}]`, asking(`filename:"d"`)},
	"tlsCertificates.caCertificates":    {`mode: SIMPLE, tlsCertificates: [{` + ownPair + `}, {serverCertificate: d, privateKey: l}]`, asking(`filename:"d"`)},
	"subjectAltNames":                   {`mode: MUTUAL, caCertificates: ca, subjectAltNames: [a], ` + ownPair, func(t evaluator.Traits) bool { return verifying(t) && t.ClientNames == "a" }},
	"verifyCertificateSpki":             {`mode: MUTUAL, caCertificates: ca, verifyCertificateSpki: ["` + strings.Repeat("A", 43) + `="], ` + ownPair, asking("verify_certificate_spki")},
	"verifyCertificateHash":             {`mode: MUTUAL, caCertificates: ca, verifyCertificateHash: ["` + strings.Repeat("a", 64) + `"], ` + ownPair, asking("verify_certificate_hash")},
	"minProtocolVersion":                {`mode: SIMPLE, minProtocolVersion: TLSV1_3, ` + ownPair, asking("tls_minimum_protocol_version:TLSv1_3")},
	"maxProtocolVersion":                {`mode: SIMPLE, maxProtocolVersion: TLSV1_2, ` + ownPair, asking("tls_maximum_protocol_version:TLSv1_2")},
	"cipherSuites":                      {`mode: SIMPLE, cipherSuites: [ECDHE-RSA-AES256-GCM-SHA384], ` + ownPair, func(t evaluator.Traits) bool { return withCertificate(t) && t.Ciphers == "ECDHE-RSA-AES256-GCM-SHA384" }},
	"insecureSkipVerify":                {`mode: MUTUAL, insecureSkipVerify: true, caCertificates: ca, ` + ownPair, verifying}, // strictly
}

func withCertificate(t evaluator.Traits) bool { return t.CertificateFile == "c" && t.KeyFile == "k" }

func verifying(t evaluator.Traits) bool { return withCertificate(t) && t.ClientCAFile == "ca" }

// asking finds what only v3 can say.
func asking(text string) func(evaluator.Traits) bool {
	return func(t evaluator.Traits) bool {
		return withCertificate(t) && strings.Contains(strings.Join(strings.Fields(t.OtherTLS), ""), text)
	}
}

// TestServerTLSFailsClosed: a server that would let more clients in than it is
// told to does not open its port.
func TestServerTLSFailsClosed(t *testing.T) {
	fields := map[string]bool{}
	leaves((&networking.ServerTLSSettings{}).ProtoReflect().Descriptor(), "", fields)
	for field := range fields {
		if _, ok := serverTLS[field]; !ok {
			t.Errorf("tls.%s is new: say here what becomes of it", field)
		}
	}
	for field, tc := range serverTLS {
		t.Run(field, func(t *testing.T) {
			objs := decoded(t, closedRegistry+"apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: h}\nspec:\n"+
				"  servers: [{port: {number: 8443, name: https, protocol: HTTPS}, hosts: [\"*\"], tls: {"+tc.tls+"}}]\n")
			s := spellFor(t, "router~10.9.9.9~router.default~default.svc.cluster.local", objs)
			for version, p := range map[string]*evaluator.Proxy{"v1": s.v1, "v3": s.v3} {
				i := slices.IndexFunc(p.Listeners, func(l *evaluator.Listener) bool { return l.Address.Port() == 8443 })
				if i >= 0 && (tc.met == nil || !tc.met(p.Listeners[i].Traits)) {
					t.Errorf("%s: neither met nor closed: %+v", version, p.Listeners[i].Traits)
				}
				if i < 0 && tc.met != nil && (version == "v3" || len(s.complaints) == 0) {
					t.Errorf("%s: the port is closed, and could be met or nobody is told", version)
				}
			}
		})
	}
}
