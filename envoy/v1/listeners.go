package v1

import (
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// ListenersResponse answers LDS.
type ListenersResponse struct {
	Listeners []Listener `json:"listeners"`
}

// Listener takes connections at one address.
type Listener struct {
	Address        string     `json:"address"`
	Name           string     `json:"name"`
	Filters        []Filter   `json:"filters"`
	SSLContext     *ServerTLS `json:"ssl_context,omitempty"`
	BindToPort     bool       `json:"bind_to_port"`
	UseOriginalDst bool       `json:"use_original_dst,omitempty"`
}

// ServerTLS terminates TLS.
type ServerTLS struct {
	CertChainFile            string `json:"cert_chain_file"`
	PrivateKeyFile           string `json:"private_key_file"`
	RequireClientCertificate bool   `json:"require_client_certificate"`
	ALPNProtocols            string `json:"alpn_protocols,omitempty"`
}

// Filter is a network or an HTTP filter; the type only informs.
type Filter struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Config any    `json:"config"`
}

// HTTPConnectionManager is the config of that filter; it has exactly one of
// rds and route_config.
type HTTPConnectionManager struct {
	CodecType         string              `json:"codec_type"`
	StatPrefix        string              `json:"stat_prefix"`
	GenerateRequestID bool                `json:"generate_request_id,omitempty"`
	UseRemoteAddress  bool                `json:"use_remote_address,omitempty"`
	Tracing           *Tracing            `json:"tracing,omitempty"`
	RDS               *RDS                `json:"rds,omitempty"`
	RouteConfig       *RouteConfiguration `json:"route_config,omitempty"`
	Filters           []Filter            `json:"filters"`
	AccessLog         []AccessLog         `json:"access_log,omitempty"`
}

// Tracing says whether spans are of the "ingress" or the "egress".
type Tracing struct {
	OperationName string `json:"operation_name"`
}

// RDS names the route table to poll for.
type RDS struct {
	Cluster         string `json:"cluster"`
	RouteConfigName string `json:"route_config_name"`
	RefreshDelayMS  int64  `json:"refresh_delay_ms"`
}

// AccessLog is a file in Envoy's default format.
type AccessLog struct {
	Path string `json:"path"`
}

// MongoProxy is the config of that filter.
type MongoProxy struct {
	StatPrefix string `json:"stat_prefix"`
}

// TCPProxy is the config of that filter.
type TCPProxy struct {
	StatPrefix  string      `json:"stat_prefix"`
	RouteConfig TCPRoutes   `json:"route_config"`
	AccessLog   []AccessLog `json:"access_log,omitempty"`
}

// TCPRoutes: the first that fits.
type TCPRoutes struct {
	Routes []TCPRoute `json:"routes"`
}

// TCPRoute sends connections to a cluster.
type TCPRoute struct {
	Cluster           string   `json:"cluster"`
	DestinationIPList []string `json:"destination_ip_list,omitempty"`
}

// nothing is the config of a filter that has none to give.
type nothing struct{}

// Listeners answers LDS for a proxy with the given address.
func Listeners(cfg *ir.Config, proxyIP string) (ListenersResponse, diag.List) {
	b := listenerBuilder{delay: cfg.RouteDelay, tables: make(map[string]*ir.RouteTable, len(cfg.RouteTables))}
	for _, t := range cfg.RouteTables {
		b.tables[t.Name] = t
	}
	listeners := cfg.ListenersAt(proxyIP)
	out := make([]Listener, len(listeners))
	for i, l := range listeners {
		out[i] = b.listener(l)
	}
	return ListenersResponse{Listeners: out}, b.problems
}

// listenerBuilder carries what the listeners of one answer share.
type listenerBuilder struct {
	delay    time.Duration
	tables   map[string]*ir.RouteTable
	problems diag.List
}

func (b *listenerBuilder) listener(l *ir.Listener) Listener {
	out := Listener{
		Address:        "tcp://" + l.Address(),
		Name:           envoy.ListenerName(l),
		Filters:        []Filter{},
		BindToPort:     l.Bind,
		UseOriginalDst: l.HandOff,
	}
	switch {
	case l.HTTP != nil:
		out.Filters = []Filter{{Type: "read", Name: "http_connection_manager", Config: b.http(l)}}
	case l.TCP != nil:
		out.Filters = tcpFilters(l.TCP)
	}
	if l.TLS != nil {
		out.SSLContext = &ServerTLS{
			CertChainFile:  l.TLS.CertificateFile,
			PrivateKeyFile: l.TLS.KeyFile,
			ALPNProtocols:  strings.Join(l.TLS.ALPN, ","),
		}
	}
	return out
}

func (b *listenerBuilder) http(l *ir.Listener) HTTPConnectionManager {
	out := HTTPConnectionManager{
		CodecType:         "auto",
		StatPrefix:        envoy.StatPrefixHTTP,
		GenerateRequestID: l.HTTP.Tracing,
		UseRemoteAddress:  l.HTTP.UseRemoteAddress,
		AccessLog:         accessLog(l.HTTP.AccessLog),
	}
	if l.HTTP.Tracing {
		out.Tracing = &Tracing{OperationName: operationName(l.Direction)}
	}
	table := l.HTTP.Inline
	if table != nil {
		routes, problems := Routes(table)
		out.RouteConfig = &routes
		b.problems = append(b.problems, problems...)
	} else {
		table = b.tables[l.HTTP.Table]
		out.RDS = &RDS{Cluster: envoy.RDSClusterV1, RouteConfigName: l.HTTP.Table, RefreshDelayMS: millis(b.delay)}
	}
	out.Filters = append(out.Filters, Filter{Name: "cors", Config: nothing{}})
	out.Filters = append(out.Filters, b.faults(l, table)...)
	out.Filters = append(out.Filters, Filter{Type: "decoder", Name: "router", Config: nothing{}})
	return out
}

// operationName: a gateway takes requests in, whatever direction they go on.
func operationName(d ir.Direction) string {
	if d == ir.Outbound {
		return "egress"
	}
	return "ingress"
}

func tcpFilters(l *ir.TCPListener) []Filter {
	proxy := TCPProxy{StatPrefix: envoy.StatPrefixTCP, AccessLog: accessLog(l.AccessLog)}
	proxy.RouteConfig.Routes = make([]TCPRoute, len(l.Routes))
	for i, r := range l.Routes {
		proxy.RouteConfig.Routes[i] = TCPRoute{Cluster: envoy.ClusterName(r.Cluster), DestinationIPList: r.Destinations}
	}
	filter := Filter{Type: "read", Name: "tcp_proxy", Config: proxy}
	if !l.Mongo {
		return []Filter{filter}
	}
	sniffer := Filter{Type: "both", Name: "mongo_proxy", Config: MongoProxy{StatPrefix: envoy.StatPrefixMongo}}
	return []Filter{sniffer, filter}
}

func accessLog(path string) []AccessLog {
	if path == "" {
		return nil
	}
	return []AccessLog{{Path: path}}
}
