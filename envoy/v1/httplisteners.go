package v1

import (
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// HTTPConnectionManager is the config of the http_connection_manager filter. It has
// exactly one of rds and route_config.
type HTTPConnectionManager struct {
	CodecType         string              `json:"codec_type"`
	StatPrefix        string              `json:"stat_prefix"`
	GenerateRequestID bool                `json:"generate_request_id,omitempty"`
	UseRemoteAddress  bool                `json:"use_remote_address,omitempty"`
	Tracing           *Tracing            `json:"tracing,omitempty"`
	HTTP1Settings     *HTTP1Settings      `json:"http1_settings,omitempty"`
	RDS               *RDS                `json:"rds,omitempty"`
	RouteConfig       *RouteConfiguration `json:"route_config,omitempty"`
	Filters           []Filter            `json:"filters"`
	AccessLog         []AccessLog         `json:"access_log,omitempty"`
}

// Tracing sets whether spans are for "ingress" or "egress".
type Tracing struct {
	OperationName string `json:"operation_name"`
}

// HTTP1Settings allows requests with a whole URL, as clients of a proxy send them.
type HTTP1Settings struct {
	AllowAbsoluteURL bool `json:"allow_absolute_url"`
}

// RDS names the route table for which Envoy polls.
type RDS struct {
	Cluster         string `json:"cluster"`
	RouteConfigName string `json:"route_config_name"`
	RefreshDelayMS  int64  `json:"refresh_delay_ms"`
}

// AccessLog is a file in Envoy's default format.
type AccessLog struct {
	Path string `json:"path"`
}

// nothing is the config of a filter without settings.
type nothing struct{}

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
	if l.HTTP.AbsoluteURLs {
		out.HTTP1Settings = &HTTP1Settings{AllowAbsoluteURL: true}
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

// operationName returns the direction of spans. A gateway is always ingress.
func operationName(d ir.Direction) string {
	if d == ir.Outbound {
		return "egress"
	}
	return "ingress"
}

func accessLog(path string) []AccessLog {
	if path == "" {
		return nil
	}
	return []AccessLog{{Path: path}}
}
