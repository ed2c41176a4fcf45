package envoy

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// API is the discovery API that a bootstrap makes an Envoy, or a gRPC program, use.
type API string

const (
	// Delta streams the v3 API: only changes are sent.
	Delta API = "delta"
	// ADS streams the v3 API as state of the world.
	ADS API = "ads"
	// REST polls the v3 API.
	REST API = "rest"
	// V1 polls the v1 API, for Envoy up to 1.8.
	V1 API = "v1"
	// GRPC is for programs that speak gRPC without a proxy, to targets of xds:///. They
	// stream the v3 API.
	GRPC API = "grpc"
)

// APIs lists the APIs that Bootstrap accepts, the default first.
var APIs = []API{Delta, ADS, REST, V1, GRPC}

// Streams reports whether changes are pushed; with the other APIs proxies poll for
// them.
func (a API) Streams() bool { return a == ADS || a == Delta || a == GRPC }

// BootstrapOptions say which proxy to start and which server it uses. All except Labels
// are required. DefaultBootstrap sets the usual values.
type BootstrapOptions struct {
	// NodeID is "role~ip~id~domain", in a form that mesh.ParseProxy accepts.
	NodeID string
	// Labels are the workload's labels, which the proxy states. A v1 Envoy cannot.
	Labels map[string]string
	// Locality is that of the workload, which the proxy states: region/zone/sub-zone.
	// The last parts may be omitted. A v1 Envoy cannot state it.
	Locality string
	// Cluster is the proxy's service cluster, which is in every URL of v1.
	Cluster string
	// Server is the URL of this server, http or https. The authorities in CAFile must
	// verify an https server by the host name in the URL.
	Server string
	// XDS has the addresses of the replicas for Envoys, each as HOST:PORT: of streams for
	// ADS, Delta and GRPC, and of HTTP for REST and V1. The default is port 15010 of
	// Server's host for streams, and Server for HTTP. The proxy uses TLS if Server does.
	XDS    []string
	CAFile string
	// Socket is the file of a socket of the server on the proxy's machine. The proxy uses
	// it instead of XDS, without TLS. "" means none.
	Socket string
	// XDSCAFile has the authorities of the servers of streams. If it is set, streams use TLS
	// even if Server does not. The default is CAFile if Server is https.
	XDSCAFile string
	// XDSCertFile and XDSKeyFile are the certificate that the proxy presents to them; ""
	// means none.
	XDSCertFile, XDSKeyFile string
	// XDSTokenFile has the token by which the proxy proves itself to them; "" means none. For
	// gRPC it is the token alone, and for Envoy what TokenSecret returns. The proxy reads it
	// again when it is replaced by another file.
	XDSTokenFile string
	API          API
	// AdminPort is the port of Envoy's admin interface, on loopback only. If it is 0, the
	// Envoy chooses a free port and writes it to --admin-address-path. A v1 Envoy cannot.
	AdminPort int
	// RefreshDelay is the delay between polls for clusters and listeners. The server sets
	// the delays for the resources to which these refer.
	RefreshDelay time.Duration
}

// DefaultBootstrap returns all options except NodeID and Server. Its CAFile is where Debian
// and many other systems keep the authorities that the machine trusts.
func DefaultBootstrap() BootstrapOptions {
	return BootstrapOptions{
		Cluster:      "istio-proxy",
		CAFile:       "/etc/ssl/certs/ca-certificates.crt",
		API:          APIs[0],
		AdminPort:    15000,
		RefreshDelay: time.Second,
	}
}

// Bootstrap returns the configuration to start an Envoy or a gRPC program with:
// YAML for v3, JSON for the others. It checks all options and reports all errors at
// once.
//
// A v1 Envoy takes its identity from the command line. It must be started with
// --service-cluster and --service-node as in the options, and with
// --max-obj-name-len 189.
func Bootstrap(o BootstrapOptions) ([]byte, error) {
	replicas, err := o.check()
	if err != nil {
		return nil, err
	}
	switch o.API {
	case V1:
		return bootstrapV1(o, replicas)
	case GRPC:
		return bootstrapGRPC(o, replicas)
	}
	return bootstrapV3(o, replicas)
}

// onLoopback reports whether all replicas are on the proxy's machine.
func onLoopback(all replicas) bool {
	for _, host := range all.hosts() {
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// authorities returns the file with the authorities of the servers that configure
// the proxy.
func (o BootstrapOptions) authorities() string { return cmp.Or(o.XDSCAFile, o.CAFile) }

func (o BootstrapOptions) check() (replicas, error) {
	server, err := parseServer(o.Server)
	replicas, bad := o.replicas(server)
	errs := []error{err, bad}
	complain := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	complain(o.NodeID == "", "node ID must not be empty")
	complain(o.Cluster == "", "service cluster must not be empty")
	complain(o.CAFile == "" && server.tls, "CA file must not be empty for an https server")
	complain(!o.API.Streams() && (o.API == V1 || !server.tls) && (o.XDSCAFile != "" || o.XDSCertFile != "" || o.XDSKeyFile != ""),
		"authorities and certificates for streams do not go with %s: a server that is polled is trusted by the CA file if it is https", o.API)
	complain((o.XDSCertFile == "") != (o.XDSKeyFile == ""), "a certificate for streams and its key go together")
	complain(o.XDSCertFile != "" && !server.tls && o.XDSCAFile == "", "a certificate for streams needs the authorities of the server: nothing is shown to one that is not reached with TLS")
	complain(o.XDSTokenFile != "" && o.API == V1, "a token does not go with %s", o.API)
	complain(o.XDSTokenFile != "" && !server.tls && o.XDSCAFile == "" && !onLoopback(replicas), "a token goes by TLS only: give the authorities of the server")
	complain(o.XDSTokenFile != "" && !filepath.IsAbs(o.XDSTokenFile), "token file must be an absolute path, found %q: an Envoy follows no other", o.XDSTokenFile)
	complain(o.XDSTokenFile != "" && o.Socket != "", "a token does not go with a socket, which proves more")
	complain(o.Socket != "" && o.API != ADS && o.API != Delta && o.API != REST, "a socket does not go with %s", o.API)
	complain(!slices.Contains(APIs, o.API), "API must be one of %v, found %q", APIs, o.API)
	complain(o.API == V1 && len(o.Labels) > 0, "labels cannot be stated in the v1 API: the proxy has those of the instances at its address")
	complain(o.API == GRPC && !strings.HasPrefix(o.NodeID, "sidecar~"), "gRPC without a proxy must have a node ID of role sidecar, found %q", o.NodeID)
	complain(o.API == V1 && o.Locality != "", "a locality cannot be stated in the v1 API: the proxy has that of the instances at its address")
	complain(!isLocality(o.Locality), "locality must be REGION/ZONE/SUBZONE or the beginning of that, found %q", o.Locality)
	complain(o.API == V1 && o.AdminPort == 0, "admin port must be 1 to 65535 in the v1 API, found 0")
	complain(o.AdminPort < 0 || o.AdminPort > 65535, "admin port must be 1 to 65535, or 0 for one that is free, found %d", o.AdminPort)
	complain(o.RefreshDelay < time.Millisecond, "refresh delay must be at least 1ms, found %v", o.RefreshDelay)
	return replicas, errors.Join(errs...)
}

// isLocality checks that each given part of region, zone and sub-zone has a name.
func isLocality(text string) bool {
	parts := strings.Split(text, "/")
	return text == "" || len(parts) <= 3 && !slices.Contains(parts, "")
}

// endpoint returns the address of the server.
type endpoint struct {
	host   string
	port   int
	tls    bool
	socket string // on the proxy's machine, instead of host and port
}

func parseServer(text string) (endpoint, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return endpoint{}, fmt.Errorf("server must be a URL like http://127.0.0.1:8080, found %q", text)
	}
	if strings.Trim(u.Path, "/") != "" {
		return endpoint{}, fmt.Errorf("server must be a URL without a path, as Envoy has its own paths, found %q", text)
	}
	out := endpoint{host: u.Hostname(), port: 80, tls: u.Scheme == "https"}
	if out.tls {
		out.port = 443
	}
	if p := u.Port(); p != "" {
		if out.port, err = strconv.Atoi(p); err != nil || out.port < 1 || out.port > 65535 {
			return endpoint{}, fmt.Errorf("port of the server must be 1 to 65535, found %q", text)
		}
	}
	return out, nil
}

// String returns host:port.
func (e endpoint) String() string { return net.JoinHostPort(e.host, strconv.Itoa(e.port)) }
