package envoy

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"strconv"
)

// replicas are the servers that an Envoy may use. It uses the first as long as it can.
type replicas []endpoint

// defaultXDSPort is the default port of pilot-api's streams.
const defaultXDSPort = 15010

// replicas returns the replicas of the options. The order depends on the proxy, so that
// each replica has its share of the proxies. A proxy stays with one replica: two replicas
// may learn of a change at different times, and would move it back and forth.
func (o BootstrapOptions) replicas(server endpoint) (replicas, error) {
	if o.Socket != "" {
		return replicas{{socket: o.Socket}}, nil
	}
	server.tls = server.tls || o.XDSCAFile != ""
	if len(o.XDS) == 0 {
		if o.API.Streams() {
			server.port = defaultXDSPort
		}
		return replicas{server}, nil
	}
	var all replicas
	var errs []error
	for _, text := range o.XDS {
		r, err := parseReplica(text)
		r.tls = server.tls
		if err == nil && slices.Contains(all, r) {
			err = fmt.Errorf("address %s of a replica is there twice", text)
		}
		all, errs = append(all, r), append(errs, err)
	}
	if all.named() && slices.ContainsFunc(all, endpoint.isIPv6) {
		errs = append(errs, errors.New("names and IPv6 addresses of replicas cannot be mixed: names are resolved to IPv4 addresses"))
	}
	first := share(o.NodeID, len(all))
	return slices.Concat(all[first:], all[:first]), errors.Join(errs...)
}

func parseReplica(text string) (endpoint, error) {
	host, portText, err := net.SplitHostPort(text)
	port, bad := strconv.Atoi(portText)
	if err != nil || bad != nil || host == "" || port < 1 || port > 65535 {
		return endpoint{}, fmt.Errorf("address of a replica must be HOST:PORT like 127.0.0.1:15010, found %q", text)
	}
	return endpoint{host: host, port: port}, nil
}

// share returns which of n replicas comes first for the proxy.
func share(nodeID string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(nodeID))
	return int(h.Sum32() % uint32(n))
}

// tls reports whether the proxy uses TLS for the replicas, all or none.
func (r replicas) tls() bool { return r[0].tls }

// named reports whether Envoy must resolve the name of a replica.
func (r replicas) named() bool {
	return slices.ContainsFunc(r, func(e endpoint) bool { return e.socket == "" && !e.isIP() })
}

// several reports whether there may be more than one replica: a name may have several
// addresses.
func (r replicas) several() bool { return len(r) > 1 || r.named() }

// hosts returns the names or addresses that certificates must have.
func (r replicas) hosts() []string {
	var hosts []string
	for _, e := range r {
		if !slices.Contains(hosts, e.host) {
			hosts = append(hosts, e.host)
		}
	}
	return hosts
}

// isIP reports whether a host is an address and not a name that Envoy must resolve.
func (e endpoint) isIP() bool { return net.ParseIP(e.host) != nil }

// address returns the address of a host for Envoy.
func (e endpoint) address() object {
	if e.socket != "" {
		return object{"pipe": object{"path": e.socket}}
	}
	return socketAddress(e.host, e.port)
}

func (e endpoint) isIPv6() bool { return e.isIP() && net.ParseIP(e.host).To4() == nil }
