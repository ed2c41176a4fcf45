package bridge

import (
	"errors"
	"fmt"
)

type connectionManager struct {
	CodecType         string      `json:"codec_type"`
	StatPrefix        string      `json:"stat_prefix"`
	RDS               *rds        `json:"rds"`
	RouteConfig       *routeTable `json:"route_config"`
	Filters           []filter    `json:"filters"`
	GenerateRequestID *bool       `json:"generate_request_id"`
	UseRemoteAddress  *bool       `json:"use_remote_address"`
	AccessLog         []accessLog `json:"access_log"`
	Tracing           *struct {
		Operation string `json:"operation_name"`
	} `json:"tracing"`
	HTTP1 struct {
		AllowAbsoluteURL bool `json:"allow_absolute_url"`
	} `json:"http1_settings"`
}

type rds struct {
	Cluster      string `json:"cluster"`
	Name         string `json:"route_config_name"`
	RefreshDelay int    `json:"refresh_delay_ms"`
}

// tablesOf returns the tables that listeners poll for.
func tablesOf(text []byte) ([]rds, error) {
	all, err := readListeners(text)
	if err != nil {
		return nil, err
	}
	var tables []rds
	for _, l := range all {
		for _, f := range l.Filters {
			if f.Name != "http_connection_manager" {
				continue
			}
			var m connectionManager
			if err := read(f.Config, &m); err != nil {
				return nil, err
			}
			if m.RDS != nil {
				tables = append(tables, *m.RDS)
			}
		}
	}
	return tables, nil
}

// turnHTTP also sets what v3 requires on the listener.
func turnHTTP(config []byte, listener object, tableFile func(string) string) ([]object, error) {
	var m connectionManager
	if err := read(config, &m); err != nil {
		return nil, err
	}
	o, err := m.turn()
	if err != nil {
		return nil, err
	}
	if err := m.addRoutes(o, tableFile); err != nil {
		return nil, err
	}
	if m.Tracing != nil {
		directions := map[string]string{"ingress": "INBOUND", "egress": "OUTBOUND"}
		if listener["traffic_direction"], err = choose("operation_name", m.Tracing.Operation, directions); err != nil {
			return nil, err
		}
	}
	return []object{{"filters": list{typed("envoy.filters.network.http_connection_manager",
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", o)}}}, nil
}

// turn sets v1's defaults where they differ: absolute URLs and idle times.
func (m *connectionManager) turn() (object, error) {
	codec, err := choose("codec_type", m.CodecType, map[string]string{"auto": "AUTO", "http1": "HTTP1", "http2": "HTTP2"})
	if err != nil {
		return nil, err
	}
	filters, err := turnAll(m.Filters, (*filter).turnHTTP)
	if err != nil {
		return nil, fmt.Errorf("filters%w", err)
	}
	o := object{
		"codec_type": codec, "stat_prefix": m.StatPrefix, "http_filters": filters,
		"access_log":                   turnAccessLogs(m.AccessLog),
		"http_protocol_options":        object{"allow_absolute_url": m.HTTP1.AllowAbsoluteURL},
		"common_http_protocol_options": object{"idle_timeout": "0s"},
		"stream_idle_timeout":          "0s",
	}
	if m.GenerateRequestID != nil {
		o["generate_request_id"] = *m.GenerateRequestID
	}
	if m.UseRemoteAddress != nil {
		o["use_remote_address"] = *m.UseRemoteAddress
	}
	return o, nil
}

func (m *connectionManager) addRoutes(o object, tableFile func(string) string) (err error) {
	switch {
	case (m.RDS == nil) == (m.RouteConfig == nil):
		return errors.New("a connection manager has one of rds and route_config")
	case m.RDS != nil:
		o["rds"] = object{"route_config_name": m.RDS.Name, "config_source": fileSource(tableFile(m.RDS.Name))}
	default:
		o["route_config"], err = m.RouteConfig.turn("inline")
	}
	return err
}

type accessLog struct {
	Path string `json:"path"`
}

func turnAccessLogs(logs []accessLog) list {
	out := make(list, len(logs))
	for i, l := range logs {
		out[i] = typed("envoy.access_loggers.file",
			"envoy.extensions.access_loggers.file.v3.FileAccessLog", object{"path": l.Path})
	}
	return out
}
