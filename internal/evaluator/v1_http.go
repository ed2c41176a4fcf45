package evaluator

import "encoding/json"

func (r *v1Reader) http(at string, text json.RawMessage, out *Listener) {
	var manager struct {
		Codec     string `json:"codec_type"`
		Prefix    string `json:"stat_prefix"`
		RequestID *bool  `json:"generate_request_id"`
		Remote    bool   `json:"use_remote_address"`
		Tracing   struct {
			Operation string `json:"operation_name"`
		} `json:"tracing"`
		HTTP1 struct {
			AbsoluteURLs bool `json:"allow_absolute_url"`
		} `json:"http1_settings"`
		RDS *struct {
			Cluster string `json:"cluster"`
			Name    string `json:"route_config_name"`
			DelayMS int64  `json:"refresh_delay_ms"`
		} `json:"rds"`
		Inline    *v1Table    `json:"route_config"`
		Filters   []v1Filter  `json:"filters"`
		AccessLog v1AccessLog `json:"access_log"`
	}
	r.decode(at, text, &manager)
	r.require(manager.Codec == "auto", at, "codec %q is not known", manager.Codec)
	r.require(withDefault(manager.RequestID, true), at, "requests without an ID are not known here")
	r.require((manager.RDS == nil) != (manager.Inline == nil), at, "must have a table inline or the name of one, and not both")
	out.UseRemoteAddress, out.Tracing = manager.Remote, manager.Tracing.Operation
	out.AccessLog = r.accessLog(at, manager.AccessLog)
	out.HTTP = &HTTP{AbsoluteURLs: manager.HTTP1.AbsoluteURLs}
	if manager.Inline != nil {
		out.HTTP.VirtualHosts = r.table(at, *manager.Inline)
	} else if manager.RDS != nil {
		hosts, ok := r.tables[manager.RDS.Name]
		r.require(ok, at, "there is no answer for its table %s", manager.RDS.Name)
		out.HTTP.VirtualHosts = hosts
	}
	r.httpFilters(at, manager.Filters, out.HTTP)
}

// httpFilters reads cors, faults and the router, in that order.
func (r *v1Reader) httpFilters(at string, filters []v1Filter, out *HTTP) {
	last := len(filters) - 1
	for i, f := range filters {
		switch f.Name {
		case "cors":
			r.require(i == 0, at, "cors must be the first filter")
			r.empty(at, f.Config)
			out.CORS = true
		case "fault":
			out.Faults = append(out.Faults, r.fault(at, f.Config))
		case "router":
			r.empty(at, f.Config)
		default:
			r.fail(at, "filter %s is not known", f.Name)
		}
		r.require((f.Name == "router") == (i == last), at, "the router must be the last filter")
	}
	r.require(last >= 0, at, "must have a router")
}

func (r *v1Reader) fault(at string, text json.RawMessage) FaultFilter {
	var config struct {
		Abort struct {
			Percent int `json:"abort_percent"`
			Status  int `json:"http_status"`
		} `json:"abort"`
		Delay struct {
			Type       string `json:"type"`
			Percent    int    `json:"fixed_delay_percent"`
			DurationMS int64  `json:"fixed_duration_ms"`
		} `json:"delay"`
		Headers []v1ValueMatch `json:"headers"`
		Cluster string         `json:"upstream_cluster"`
	}
	r.decode(at, text, &config)
	return FaultFilter{
		Cluster: config.Cluster,
		Headers: r.headers(at, config.Headers),
		Fault: Fault{
			Delay: milliseconds(config.Delay.DurationMS), DelayPerMillion: config.Delay.Percent * onePercent,
			AbortStatus: config.Abort.Status, AbortPerMillion: config.Abort.Percent * onePercent,
		},
	}
}
