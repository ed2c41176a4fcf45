package evaluator

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

type v1Listener struct {
	Address string     `json:"address"`
	Name    string     `json:"name"`
	Filters []v1Filter `json:"filters"`
	TLS     *struct {
		Certificate       string   `json:"cert_chain_file"`
		Key               string   `json:"private_key_file"`
		CA                string   `json:"ca_cert_file"`
		Names             []string `json:"verify_subject_alt_name"`
		ClientCertificate bool     `json:"require_client_certificate"`
		ALPN              string   `json:"alpn_protocols"`
		Ciphers           string   `json:"cipher_suites"`
	} `json:"ssl_context"`
	Bind           *bool `json:"bind_to_port"`
	UseOriginalDst bool  `json:"use_original_dst"`
}

// v1Filter is a network or an HTTP filter. Its type is only informative.
type v1Filter struct {
	Type   string          `json:"type"`
	Name   string          `json:"name"`
	Config json.RawMessage `json:"config"`
}

type v1AccessLog []struct {
	Path string `json:"path"`
}

func (r *v1Reader) readListeners(text []byte) {
	var answer struct {
		Listeners []v1Listener `json:"listeners"`
	}
	r.decode("listeners", text, &answer)
	for _, l := range answer.Listeners {
		r.proxy.Listeners = append(r.proxy.Listeners, r.listener("listener "+l.Name, l))
	}
}

func (r *v1Reader) listener(at string, l v1Listener) *Listener {
	address, ok := strings.CutPrefix(l.Address, "tcp://")
	r.require(ok, at, "address %q is not known", l.Address)
	out := &Listener{Traits: Traits{
		Name: l.Name, Address: r.addrPort(at, address),
		Bind: withDefault(l.Bind, true), UseOriginalDst: l.UseOriginalDst,
	}}
	if t := l.TLS; t != nil {
		r.require(!t.ClientCertificate || t.CA != "", at, "a client certificate goes with authorities for it")
		out.CertificateFile, out.KeyFile, out.ClientCAFile, out.ALPN = t.Certificate, t.Key, t.CA, t.ALPN
		out.ClientOptional = t.CA != "" && !t.ClientCertificate
		out.Ciphers, out.ClientNames = t.Ciphers, strings.Join(slices.Sorted(slices.Values(t.Names)), ",")
	}
	filters := l.Filters
	if len(filters) > 0 && filters[0].Name == "mongo_proxy" {
		out.Mongo, filters = true, filters[1:]
	}
	r.require(len(filters) <= 1, at, "more than one filter that ends the chain")
	for _, f := range filters {
		switch f.Name {
		case "http_connection_manager":
			r.http(at, f.Config, out)
		case "tcp_proxy":
			r.tcp(at, f.Config, out)
		default:
			r.fail(at, "filter %s is not known", f.Name)
		}
	}
	return out
}

func (r *v1Reader) tcp(at string, text json.RawMessage, out *Listener) {
	var proxy struct {
		StatPrefix  string `json:"stat_prefix"`
		RouteConfig struct {
			Routes []struct {
				Cluster      string   `json:"cluster"`
				Destinations []string `json:"destination_ip_list"`
				Port         string   `json:"destination_ports"`
			} `json:"routes"`
		} `json:"route_config"`
		AccessLog v1AccessLog `json:"access_log"`
	}
	r.decode(at, text, &proxy)
	out.AccessLog = r.accessLog(at, proxy.AccessLog)
	for _, route := range proxy.RouteConfig.Routes {
		port := 0
		if route.Port != "" {
			var err error
			port, err = strconv.Atoi(route.Port)
			r.require(err == nil && port > 0, at, "ports %q are not known", route.Port)
		}
		if len(route.Destinations) == 0 {
			out.Chains = append(out.Chains, Chain{Port: port, Shares: whole(route.Cluster)})
		}
		for _, text := range route.Destinations {
			block, err := netip.ParsePrefix(text)
			if err != nil {
				r.fail(at, "%v", err)
				continue
			}
			out.Chains = append(out.Chains, Chain{Destination: block.Masked(), Port: port, Shares: whole(route.Cluster)})
		}
	}
}

func whole(cluster string) []Share { return []Share{{Cluster: cluster, Percent: 100}} }

func (r *v1Reader) accessLog(at string, log v1AccessLog) string {
	r.require(len(log) <= 1, at, "more than one access log")
	if len(log) == 0 {
		return ""
	}
	return log[0].Path
}
