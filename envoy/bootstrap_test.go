package envoy_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/xds"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/golden"
	"github.com/pilot-api/pilot-api/internal/v1schema"
)

const nodeID = "sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local"

// bootstrapOf returns the default options with a node, a server and a change.
func bootstrapOf(change func(*envoy.BootstrapOptions)) envoy.BootstrapOptions {
	o := envoy.DefaultBootstrap()
	o.NodeID, o.Server = nodeID, "http://127.0.0.1:8080"
	change(&o)
	return o
}

func rest(o *envoy.BootstrapOptions) { o.API = envoy.REST }

var bootstraps = []struct {
	name    string
	options envoy.BootstrapOptions
}{
	{"delta", bootstrapOf(func(*envoy.BootstrapOptions) {})},
	{"ads-tls", bootstrapOf(func(o *envoy.BootstrapOptions) {
		o.API, o.Server, o.CAFile, o.XDS = envoy.ADS, "https://mesh.example", "ca.crt", []string{"streams.example:7000"}
	})},
	{"delta-socket", bootstrapOf(func(o *envoy.BootstrapOptions) {
		o.Server, o.Socket, o.XDS = "https://localhost", "/var/lib/pilot-api/grpc.sock", []string{"localhost:15010"}
	})},
	{"rest", bootstrapOf(rest)},
	{"rest-socket", bootstrapOf(func(o *envoy.BootstrapOptions) { rest(o); o.Socket = "/var/lib/pilot-api/http.sock" })},
	{"rest-tls", bootstrapOf(func(o *envoy.BootstrapOptions) {
		rest(o)
		o.Server, o.CAFile, o.Cluster = "https://mesh.example", "ca.crt", "web"
		o.AdminPort, o.RefreshDelay = 15555, 200*time.Millisecond
	})},
	{"rest-tls-ip", bootstrapOf(func(o *envoy.BootstrapOptions) {
		o.API, o.Server, o.CAFile = envoy.REST, "https://[::1]:8443/", "ca.crt"
	})},
	{"rest-labels", bootstrapOf(func(o *envoy.BootstrapOptions) {
		rest(o)
		o.Labels = map[string]string{"istio": "ingressgateway", "version": "1"}
	})},
	{"delta-place", bootstrapOf(func(o *envoy.BootstrapOptions) { o.AdminPort, o.Locality = 0, "eu/eu-1/rack-7" })},
	{"delta-replicas", bootstrapOf(func(o *envoy.BootstrapOptions) {
		o.XDS = []string{"10.0.0.1:15010", "10.0.0.2:15010", "10.0.0.3:15010"}
	})},
	{"delta-replicas-tls", bootstrapOf(func(o *envoy.BootstrapOptions) {
		o.Server, o.CAFile, o.XDS = "https://mesh.example", "ca.crt", []string{"a.mesh.example:15010", "10.0.0.2:15010"}
	})},
	{"delta-mutual-tls", bootstrapOf(func(o *envoy.BootstrapOptions) {
		o.XDS, o.XDSCAFile, o.XDSCertFile, o.XDSKeyFile = []string{"mesh.example:15010"}, "xds-ca.crt", "web.crt", "web.key"
	})},
	{"grpc-mutual-tls", bootstrapOf(func(o *envoy.BootstrapOptions) {
		o.API, o.XDSCAFile, o.XDSCertFile, o.XDSKeyFile = envoy.GRPC, "xds-ca.crt", "web.crt", "web.key"
	})},
	{"rest-replicas", bootstrapOf(func(o *envoy.BootstrapOptions) {
		rest(o)
		o.XDS = []string{"10.0.0.1:8080", "10.0.0.2:8080"}
	})},
	{"v1-replicas-tls", bootstrapOf(func(o *envoy.BootstrapOptions) {
		o.Server, o.API, o.XDS = "https://mesh.example", envoy.V1, []string{"a.mesh.example:443", "b.mesh.example:443"}
	})},
	{"v1", bootstrapOf(func(o *envoy.BootstrapOptions) { o.Server, o.API = "http://mesh.example:8080", envoy.V1 })},
	{"v1-tls", bootstrapOf(func(o *envoy.BootstrapOptions) {
		o.Server, o.API, o.RefreshDelay = "https://mesh.example", envoy.V1, time.Second
	})},
	{"grpc", bootstrapOf(func(o *envoy.BootstrapOptions) { o.API, o.Labels = envoy.GRPC, map[string]string{"version": "1"} })},
	{"grpc-tls", bootstrapOf(func(o *envoy.BootstrapOptions) {
		o.API, o.Server, o.CAFile, o.XDS = envoy.GRPC, "https://mesh.example", "ca.crt", []string{"[::1]:7000", "127.0.0.1:7000"}
	})},
	{"v1-tls-ip", bootstrapOf(func(o *envoy.BootstrapOptions) { o.Server, o.API = "https://10.0.0.1", envoy.V1 })},
}

func TestBootstrap(t *testing.T) {
	arc := golden.Open(t, "testdata/bootstrap.txtar")
	for _, tc := range bootstraps {
		text, err := envoy.Bootstrap(tc.options)
		if err != nil {
			t.Fatal(err)
		}
		arc.Want(tc.name, text)
		if tc.options.API == envoy.V1 {
			v1schema.Validate(t, "bootstrap-v1", text)
		} else if tc.options.API == envoy.GRPC {
			if _, err := xds.NewXDSResolverWithConfigForTesting(text); err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
		} else if err := validateDeeply(envoytest.ParseBootstrap(t, text)); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestBootstrapComplains(t *testing.T) {
	_, err := envoy.Bootstrap(envoy.BootstrapOptions{
		Server: "mesh:8080", API: "soap", AdminPort: -1, Locality: "eu//rack-7", RefreshDelay: time.Microsecond,
	})
	if err == nil {
		t.Fatal("want an error")
	}
	for _, want := range []string{
		`node ID must not be empty`,
		`service cluster must not be empty`,
		`server must be a URL like http://127.0.0.1:8080, found "mesh:8080"`,
		`API must be one of [delta ads rest v1 grpc], found "soap"`,
		`admin port must be 1 to 65535, or 0 for one that is free, found -1`,
		`refresh delay must be at least 1ms, found 1µs`,
		`locality must be REGION/ZONE/SUBZONE or the beginning of that, found "eu//rack-7"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
	for server, want := range map[string]string{
		"":                        "server must be a URL",
		"ftp://a":                 "server must be a URL",
		"http://":                 "server must be a URL",
		"http://a/api":            "without a path",
		"http://a:99999":          "port of the server must be",
		"http://a:0":              "port of the server must be",
		"http://a b":              "server must be a URL",
		"http://user@[bad]:1/x:y": "server must be a URL",
	} {
		wantComplaint(t, want, func(o *envoy.BootstrapOptions) { o.Server = server })
	}
	for _, xds := range []string{"streams", "streams:", ":15010", "streams:0", "streams:99999", "http://streams:1"} {
		wantComplaint(t, "address of a replica must be HOST:PORT", func(o *envoy.BootstrapOptions) { o.XDS = []string{xds} })
	}
	for want, xds := range map[string][]string{
		"10.0.0.1:1 of a replica is there twice": {"10.0.0.1:1", "10.0.0.1:1"},
		"names and IPv6 addresses":               {"a:1", "[::1]:1"},
	} {
		wantComplaint(t, want, func(o *envoy.BootstrapOptions) { o.XDS = xds })
	}
	wantComplaint(t, "admin port must be 1 to 65535 in the v1 API, found 0", func(o *envoy.BootstrapOptions) { o.AdminPort, o.API = 0, envoy.V1 })
	wantComplaint(t, "refresh delay must be at least 1ms, found 0s", func(o *envoy.BootstrapOptions) { o.RefreshDelay = 0 })
	wantComplaint(t, "a socket does not go with grpc", func(o *envoy.BootstrapOptions) { o.API, o.Socket = envoy.GRPC, "/a" })
	wantComplaint(t, "do not go with rest", func(o *envoy.BootstrapOptions) { o.API, o.XDSCAFile = envoy.REST, "ca.crt" })
	wantComplaint(t, "a certificate for streams and its key go together", func(o *envoy.BootstrapOptions) { o.XDSCAFile, o.XDSCertFile = "ca.crt", "web.crt" })
	wantComplaint(t, "a certificate for streams needs the authorities", func(o *envoy.BootstrapOptions) { o.XDSCertFile, o.XDSKeyFile = "web.crt", "web.key" })
	wantComplaint(t, "CA file must not be empty", func(o *envoy.BootstrapOptions) { o.Server, o.CAFile = "https://a", "" })
}

func wantComplaint(t *testing.T, want string, change func(*envoy.BootstrapOptions)) {
	t.Helper()
	if _, err := envoy.Bootstrap(bootstrapOf(change)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want an error with %q, got %v", want, err)
	}
}
