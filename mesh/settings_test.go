package mesh_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/mesh"
)

func TestParseSettings(t *testing.T) {
	text := `
proxyListenPort: 0
proxyHttpPort: 15002
connectTimeout: 250ms
rdsRefreshDelay: 0.010s
discoveryRefreshDelay: 2s
enableTracing: false
accessLogFile: ""
rootNamespace: mesh
trustDomain: mesh.example
outboundTrafficPolicy: {mode: REGISTRY_ONLY}
onDemand: off
defaultVisibility: .
authPolicy: NONE
ingressClass: istio
ingressService: istio-ingress
ingressControllerMode: STRICT
mixerCheckServer: ""
mixerReportServer: ""
disablePolicyChecks: true
mtlsExcludedServices: [kubernetes.default.svc.cluster.local]
managementPorts:
- {name: probe, port: 3333, protocol: http}
ingressCertificates:
  a.default: {certificateFile: /a.crt, keyFile: /a.key, caFile: /ca.crt}
  b.default: {certificateFile: /b.crt}
clientCertificates:
  verifying: {caFile: /ca.crt, crlFile: /ca.crl}
  showing: {certificateFile: /c.crt, keyFile: /c.key}
secretFiles:
  shown: {certificateFile: /s.crt, keyFile: /s.key}
  shop/roots: {caFile: /ca.crt}
workloadCertificates: {certificateFile: /w.crt, keyFile: /w.key, caFile: /roots.crt}
systemRootsFile: /etc/ssl/ca-bundle.pem
networks:
  far: {gateways: [{address: 192.0.2.1, port: 15443}, {address: "2001:DB8::1", port: 1}]}
unixSocketFolders: [/run/app, /srv//sockets/]
budget: {object: 5, mesh: 1000000000}
v1Compatibility:
  tcpTakesHTTPPort: false
  all: true
  uriRegexAsHeader: false
`
	got, problems := mesh.ParseSettings([]byte(text), "mesh.yaml")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := &mesh.Settings{
		ProxyHTTPPort:         15002,
		ConnectTimeout:        250 * time.Millisecond,
		RDSRefreshDelay:       10 * time.Millisecond,
		DiscoveryRefreshDelay: 2 * time.Second,
		V1Compatibility:       mesh.AsPilot(),
		RootNamespace:         "mesh",
		TrustDomain:           "mesh.example",
		OutboundTrafficPolicy: mesh.RegistryOnly,
		OnDemand:              mesh.OnDemandOff,
		DefaultVisibility:     mesh.VisibleInside,
		Domain:                "cluster.local",
	}
	want.V1Compatibility.TCPTakesHTTPPort = false
	want.V1Compatibility.URIRegexAsHeader = false
	want.ManagementPorts = []*mesh.Port{{Name: "probe", Number: 3333, Protocol: mesh.HTTP}}
	want.IngressCertificates = map[string]mesh.Certificate{
		"a.default": {CertificateFile: "/a.crt", KeyFile: "/a.key", CAFile: "/ca.crt"},
		"b.default": {CertificateFile: "/b.crt", KeyFile: mesh.DefaultIngressCertificate.KeyFile},
	}
	want.ClientCertificates = map[string]mesh.Certificate{
		"verifying": {CAFile: "/ca.crt", CRLFile: "/ca.crl"},
		"showing":   {CertificateFile: "/c.crt", KeyFile: "/c.key"},
	}
	want.SecretFiles = map[string]mesh.SecretFile{
		"default/shown": {CertificateFile: "/s.crt", KeyFile: "/s.key"},
		"shop/roots":    {CAFile: "/ca.crt"},
	}
	want.WorkloadCertificates.Certificate = mesh.Certificate{CertificateFile: "/w.crt", KeyFile: "/w.key", CAFile: "/roots.crt"}
	want.SystemRootsFile = "/etc/ssl/ca-bundle.pem"
	want.Networks = map[string][]mesh.NetworkGateway{"far": {{Address: "192.0.2.1", Port: 15443}, {Address: "2001:db8::1", Port: 1}}}
	want.UnixSocketFolders = []string{"/run/app", "/srv/sockets"}
	want.Budget = mesh.Budget{Object: 5, Mesh: 1000000000}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseSettingsOfNothingIsDefault(t *testing.T) {
	for _, text := range []string{"", "\n", "# Only a comment.\n", "---\n", "null\n", "{}\n"} {
		got, problems := mesh.ParseSettings([]byte(text), "mesh.yaml")
		if len(problems) > 0 {
			t.Errorf("%q: %v", text, problems)
		}
		if d := cmp.Diff(mesh.DefaultSettings(), got); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

func TestParseSettingsOfSwitches(t *testing.T) {
	var one mesh.V1Compatibility
	one.EdgeMatchesLost = true
	for text, want := range map[string]mesh.V1Compatibility{
		"":                             {},
		"v1Compatibility: false":       {},
		"v1Compatibility: true":        mesh.AsPilot(),
		"v1Compatibility: {}":          {},
		"v1Compatibility: {all: true}": mesh.AsPilot(),
		"v1Compatibility: {edgeMatchesLost: true}":             one,
		"v1Compatibility: {edgeMatchesLost: true, all: false}": one,
	} {
		got, problems := mesh.ParseSettings([]byte(text), "m")
		if len(problems) > 0 || got.V1Compatibility != want {
			t.Errorf("%q: want %+v, found %+v (%v)", text, want, got, problems)
		}
	}
}

func TestParseSettingsProblems(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"unknown", "connectTimeouts: 1s", "m:1:1: connectTimeouts: there is no such setting; there are accessLogFile,"},
		{"other spelling", "connect_timeout: 1s", "m:1:1: connect_timeout: there is no such setting; did you mean connectTimeout?"},
		{"folder with no root", "unixSocketFolders: [run]", "m:1:21: unixSocketFolders[0]: must be the absolute path of a folder other than /, without .. in it, found \"run\""},
		{"folder that leads back", "unixSocketFolders: [/run/../srv]", "m:1:21: unixSocketFolders[0]: must be the absolute path"},
		{"every folder", "unixSocketFolders: [/run, //]", "m:1:27: unixSocketFolders[1]: must be the absolute path"},
		{"one folder", "unixSocketFolders: /run", "m:1:20: unixSocketFolders: must be a list of folders, found \"/run\""},
		{"domain is a flag", "domain: x", "m:1:1: domain: there is no such setting"},
		{"twice", "proxyHttpPort: 1\nproxyHttpPort: 2", "m:2:1: proxyHttpPort: set a second time, first in line 1"},
		{"port too big", "proxyListenPort: 65536", "m:1:18: proxyListenPort: must be a port number from 0 to 65535, found 65536"},
		{"port below", "proxyListenPort: -1", "from 0 to 65535, found -1"},
		{"quoted port", `proxyListenPort: "80"`, `from 0 to 65535, found "80"`},
		{"port is a list", "proxyListenPort: [80]", "from 0 to 65535, found a list"},
		{"same ports", "proxyListenPort: 81\nproxyHttpPort: 81", "proxyHttpPort: must differ from proxyListenPort, both are 81"},
		{"no port at all", "proxyListenPort: 0", "proxyListenPort: sidecars take no traffic at all"},
		{"duration without unit", "connectTimeout: 5", "m:1:17: connectTimeout: must be a duration of whole milliseconds, 1ms at least, such as 250ms or 1.5s, found 5"},
		{"duration too short", "rdsRefreshDelay: 999us", "1ms at least"},
		{"duration with fraction", "rdsRefreshDelay: 1500us", "whole milliseconds"},
		{"trust domain is an ID", "trustDomain: spiffe://cluster.local", "m:1:14: trustDomain: must be a trust domain, as in cluster.local, found \"spiffe://cluster.local\""},
		{"trust domain in capitals", "trustDomain: Cluster.local", "must be a trust domain"},
		{"trust domain is a number", "trustDomain: 1", "must be a trust domain"},
		{"no bool", "enableTracing: yes please", `must be true or false, found "yes please"`},
		{"no text", "accessLogFile: {}", "must be a text, found a mapping"},
		{"ignored names have types too", "mixerCheckServer: 5", "m:1:19: mixerCheckServer: must be a text, found 5"},
		{"asks for Mixer", "mixerCheckServer: mixer:9091", "m:1:19: mixerCheckServer: there is no Mixer: no request is checked"},
		{"asks for an ingress service", "ingressService: other", "m:1:17: ingressService: pilot-api reads no Kubernetes ingresses"},
		{"configures proxies", "defaultConfig: {concurrency: 2}", "m:1:16: defaultConfig: pilot-api does not start proxies"},
		{"excludes no list", "mtlsExcludedServices: a", `m:1:23: mtlsExcludedServices: must be a list of services, found "a"`},
		{"asks for mutual TLS", "authPolicy: MUTUAL_TLS", "a PeerAuthentication turns mutual TLS on"},
		{"management port without number", "managementPorts: [{name: a, protocol: TCP}]", "m:1:19: managementPorts[0]: must have a port from 1 to 65535 and a protocol"},
		{"management port twice", "managementPorts: [{port: 1, protocol: TCP}, {port: 1, protocol: TCP}]", "managementPorts[1].port: port 1 is already given"},
		{"management protocol", "managementPorts: [{port: 1, protocol: x}]", `managementPorts[0].protocol: must be a protocol, such as HTTP or TCP, found "x"`},
		{"management ports no list", "managementPorts: {}", "must be a list of ports"},
		{"certificate without file", "ingressCertificates: {s: {keyFile: ''}}", "ingressCertificates.s: must have a certificateFile and a keyFile"},
		{"certificate of a client without key", "clientCertificates: {s: {certificateFile: /a}}", "clientCertificates.s: must have both a certificateFile and a keyFile, or neither"},
		{"certificate of a client without files", "clientCertificates: {s: {}}", "clientCertificates.s: must have a caFile, or a certificateFile and a keyFile"},
		{"revocations by nobody", "clientCertificates: {s: {certificateFile: /a, keyFile: /b, crlFile: /c}}", "clientCertificates.s: must have a caFile together with crlFile"},
		{"workloads without authority", "workloadCertificates: {certificateFile: /a, keyFile: /b}", "workloadCertificates: must have a certificateFile, a keyFile and a caFile"},
		{"workloads with two forms", "workloadCertificates: {sdsFile: /a, sdsSocket: /b}", "workloadCertificates: must have files, or an sdsFile, or an sdsSocket"},
		{"workloads with files and a file of secrets", "workloadCertificates: {sdsFile: /a, caFile: /b}", "workloadCertificates: must have files, or an sdsFile, or an sdsSocket"},
		{"workloads with a file somewhere", "workloadCertificates: {sdsFile: default.yaml}", "workloadCertificates: must have an sdsFile that begins with /"},
		{"workloads with a socket somewhere", "workloadCertificates: {sdsSocket: agent.sock}", "workloadCertificates: must have an sdsSocket that begins with /"},
		{"secret without key", "secretFiles: {s: {certificateFile: /a}}", "secretFiles.s: must have both a certificateFile and a keyFile, or neither"},
		{"secret without files", "secretFiles: {s: {}}", "secretFiles.s: must have a certificateFile and a keyFile, a caFile, or all three"},
		{"secret with revocations", "secretFiles: {s: {caFile: /a, crlFile: /b}}", "secretFiles.s.crlFile: there is no such setting"},
		{"secret of no name", "secretFiles: {a/b/c: {caFile: /a}}", "secretFiles.a/b/c: must be named like a Secret"},
		{"secret by two names", "secretFiles: {s: {caFile: /a}, default/s: {caFile: /a}}", "secretFiles.default/s: must be named once, and default/s already is"},
		{"certificate no mapping", "ingressCertificates: {s: x}", `ingressCertificates.s: must be a mapping, found "x"`},
		{"network without gateways", "networks: {far: {}}", "networks.far: must have gateways"},
		{"gateways no list", "networks: {far: {gateways: {}}}", "networks.far.gateways: must be a list of gateways, each with address and port, found a mapping"},
		{"gateway by name", "networks: {far: {gateways: [{address: a.b, port: 1}]}}", "networks.far.gateways[0]: must have an IP address and a port from 1 to 65535"},
		{"gateway without port", "networks: {far: {gateways: [{address: 10.0.0.1}]}}", "networks.far.gateways[0]: must have an IP address and a port from 1 to 65535"},
		{"no budget at all", "budget: {object: 0}", "m:1:18: budget.object: must be a number of parts from 1 to 1000000000, found 0"},
		{"budget without a bound", "budget: {mesh: 1000000001}", "budget.mesh: must be a number of parts from 1 to 1000000000, found 1000000001"},
		{"budget of what", "budget: {view: 1}", "budget.view: there is no such setting; there are mesh, object"},
		{"unknown switch", "v1Compatibility: {a: true}", "v1Compatibility.a: there is no such setting; there are all, anyNamespaceRules,"},
		{"all switches no bool", "v1Compatibility: {all: 1}", "v1Compatibility.all: must be true or false, found 1"},
		{"switch no bool", "v1Compatibility: {tcpTakesHTTPPort: 1}", "v1Compatibility.tcpTakesHTTPPort: must be true or false, found 1"},
		{"switches no bool", "v1Compatibility: some", "v1Compatibility: must be true or false for all"},
		{"list", "- a", "m:1:1: want a mapping"},
		{"two documents", "proxyHttpPort: 1\n---\nproxyHttpPort: 2", "want one YAML document"},
		{"no YAML", "a: [", "m:"},
	} {
		t.Run(test.name, func(t *testing.T) {
			settings, problems := mesh.ParseSettings([]byte(test.text), "m")
			if got := problems.Error(); !strings.Contains(got, test.want) {
				t.Errorf("want %q in:\n%s", test.want, got)
			}
			if (settings == nil) != (problems.Err() != nil) {
				t.Errorf("settings %v beside %v", settings, problems)
			}
		})
	}
}

func TestParseSettingsFindsAll(t *testing.T) {
	_, problems := mesh.ParseSettings([]byte("a: 1\nconnectTimeout: x\nproxyHttpPort: -5\n"), "m")
	if len(problems) != 3 {
		t.Errorf("want three problems, found:\n%v", problems)
	}
}

func FuzzParseSettings(f *testing.F) {
	for _, text := range []string{"", "a: 1", "proxyListenPort: 80", "x: &x\n- *x\n", "connectTimeout: 1s\n---\n", "? {a: b}\n: c\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		settings, problems := mesh.ParseSettings([]byte(text), "")
		if (settings == nil) != (problems.Err() != nil) {
			t.Errorf("settings %v beside %v", settings, problems)
		}
	})
}

func TestHostsOnDemandNeedCapturedTraffic(t *testing.T) {
	for text, want := range map[string]string{
		"onDemand: hosts":                                                     "",
		"onDemand: off\nproxyHttpPort: 15002":                                 "",
		"onDemand: all":                                                       "must be off or hosts",
		"onDemand: hosts\nproxyHttpPort: 15002":                               "requires that proxyHttpPort is 0",
		"onDemand: hosts\nproxyListenPort: 0\nproxyHttpPort: 15002":           "requires captured traffic",
		"onDemand: hosts\nv1Compatibility: {unknownDestinationsClosed: true}": "excludes hostsAsWritten and unknownDestinationsClosed",
	} {
		_, problems := mesh.ParseSettings([]byte(text), "mesh.yaml")
		if got := problems.Error(); want == "" && len(problems) > 0 || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
