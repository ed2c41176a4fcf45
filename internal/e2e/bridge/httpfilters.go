package bridge

import "fmt"

const corsFilter = "envoy.filters.http.cors"

func (f *filter) turnHTTP() (object, error) {
	switch f.Name {
	case "router":
		return typed("envoy.filters.http.router", "envoy.extensions.filters.http.router.v3.Router", nil), read(f.Config, &struct{}{})
	case "cors":
		return typed(corsFilter, "envoy.extensions.filters.http.cors.v3.Cors", nil), read(f.Config, &struct{}{})
	case "fault":
		var c fault
		if err := read(f.Config, &c); err != nil {
			return nil, err
		}
		config, err := c.turn()
		return typed("envoy.filters.http.fault", "envoy.extensions.filters.http.fault.v3.HTTPFault", config), err
	default:
		return nil, fmt.Errorf("HTTP filter %s is not known", f.Name)
	}
}

// fault applies to requests to a cluster that match all headers.
type fault struct {
	Cluster string        `json:"upstream_cluster"`
	Headers []headerMatch `json:"headers"`
	Abort   *struct {
		Percent int `json:"abort_percent"`
		Status  int `json:"http_status"`
	} `json:"abort"`
	Delay *struct {
		Type     string `json:"type"`
		Percent  int    `json:"fixed_delay_percent"`
		Duration int64  `json:"fixed_duration_ms"`
	} `json:"delay"`
}

func (f *fault) turn() (object, error) {
	o := object{"headers": turnMatches(f.Headers)}
	if f.Cluster != "" {
		o["upstream_cluster"] = f.Cluster
	}
	if a := f.Abort; a != nil {
		o["abort"] = object{"percentage": percent(a.Percent), "http_status": a.Status}
	}
	if d := f.Delay; d != nil {
		if d.Type != "fixed" {
			return nil, fmt.Errorf("delay type %q is not known", d.Type)
		}
		o["delay"] = object{"percentage": percent(d.Percent), "fixed_delay": duration(d.Duration)}
	}
	return o, nil
}

// cors is a policy. All its field names but two are the same in v1 and v3.
type cors struct {
	AllowOrigin      []string `json:"allow_origin"`
	AllowMethods     string   `json:"allow_methods"`
	AllowHeaders     string   `json:"allow_headers"`
	ExposeHeaders    string   `json:"expose_headers"`
	MaxAge           string   `json:"max_age"`
	AllowCredentials *bool    `json:"allow_credentials"`
	Enabled          *bool    `json:"enabled"`
}

func (c *cors) turn() object {
	origins := list{}
	for _, origin := range c.AllowOrigin {
		origins = append(origins, object{"exact": origin})
	}
	o := object{
		"allow_origin_string_match": origins, "allow_methods": c.AllowMethods,
		"allow_headers": c.AllowHeaders, "expose_headers": c.ExposeHeaders, "max_age": c.MaxAge,
	}
	if c.AllowCredentials != nil {
		o["allow_credentials"] = *c.AllowCredentials
	}
	if c.Enabled != nil && !*c.Enabled {
		o["filter_enabled"] = object{"default_value": percent(0)}
	}
	return withType("envoy.extensions.filters.http.cors.v3.CorsPolicy", o)
}
