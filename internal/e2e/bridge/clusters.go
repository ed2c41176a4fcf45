package bridge

import "fmt"

type clusters struct {
	Clusters []cluster `json:"clusters"`
}

type cluster struct {
	Name           string `json:"name"`
	ServiceName    string `json:"service_name"`
	Type           string `json:"type"`
	LBType         string `json:"lb_type"`
	ConnectTimeout int64  `json:"connect_timeout_ms"`
	Hosts          []struct {
		URL string `json:"url"`
	} `json:"hosts"`
	Features         string     `json:"features"`
	MaxRequests      int        `json:"max_requests_per_connection"`
	SSLContext       *clientTLS `json:"ssl_context"`
	CircuitBreakers  *breakers  `json:"circuit_breakers"`
	OutlierDetection *outliers  `json:"outlier_detection"`
}

// service is the name that the endpoints of the cluster have in SDS.
func (c *cluster) service() string {
	if c.ServiceName != "" {
		return c.ServiceName
	}
	return c.Name
}

// servicesOf names what clusters need endpoints of.
func servicesOf(text []byte) ([]string, error) {
	var body clusters
	if err := read(text, &body); err != nil {
		return nil, err
	}
	var names []string
	for _, c := range body.Clusters {
		if c.Type == "sds" {
			names = append(names, c.service())
		}
	}
	return names, nil
}

func turnClusters(text []byte, hosts map[string][]byte) (list, error) {
	var body clusters
	if err := read(text, &body); err != nil {
		return nil, err
	}
	return turnAll(body.Clusters, func(c *cluster) (object, error) {
		o, err := c.turn(hosts[c.service()])
		if err != nil {
			err = fmt.Errorf("%s: %w", c.Name, err)
		}
		return o, err
	})
}

var (
	clusterTypes = map[string]string{
		"sds": "STATIC", "static": "STATIC", "strict_dns": "STRICT_DNS", "original_dst": "ORIGINAL_DST",
	}
	balancers = map[string]string{
		"round_robin": "ROUND_ROBIN", "least_request": "LEAST_REQUEST", "random": "RANDOM",
		"original_dst_lb": "CLUSTER_PROVIDED",
	}
)

func (c *cluster) turn(sds []byte) (object, error) {
	kind, err := choose("type", c.Type, clusterTypes)
	if err != nil {
		return nil, err
	}
	balancer, err := choose("lb_type", c.LBType, balancers)
	if err != nil {
		return nil, err
	}
	o := object{
		"name": c.Name, "type": kind, "lb_policy": balancer,
		"connect_timeout":   duration(c.ConnectTimeout),
		"dns_lookup_family": "V4_ONLY",
	}
	if err := c.addHosts(o, sds); err != nil {
		return nil, err
	}
	if c.CircuitBreakers != nil {
		o["circuit_breakers"] = c.CircuitBreakers.turn()
	}
	if c.OutlierDetection != nil {
		o["outlier_detection"] = c.OutlierDetection.turn()
	}
	if c.SSLContext != nil {
		o["transport_socket"] = c.SSLContext.turn()
	}
	return o, c.addProtocol(o)
}

// addProtocol says what there is to say of connections to the hosts.
func (c *cluster) addProtocol(o object) error {
	protocols := map[string]string{"": "http_protocol_options", "http2": "http2_protocol_options"}
	protocol, err := choose("features", c.Features, protocols)
	if err != nil || c.Features == "" && c.MaxRequests == 0 {
		return err
	}
	config := object{"explicit_http_config": object{protocol: object{}}}
	if c.MaxRequests > 0 {
		config["common_http_protocol_options"] = object{"max_requests_per_connection": c.MaxRequests}
	}
	const options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	o["typed_extension_protocol_options"] = object{options: withType(options, config)}
	return nil
}

type breakers struct {
	Default breaker `json:"default"`
}

// breaker has the same names in v1 and v3.
type breaker struct {
	MaxConnections     int `json:"max_connections,omitempty"`
	MaxPendingRequests int `json:"max_pending_requests,omitempty"`
	MaxRequests        int `json:"max_requests,omitempty"`
	MaxRetries         int `json:"max_retries,omitempty"`
}

func (b *breakers) turn() object {
	return object{"thresholds": []breaker{b.Default}}
}

type outliers struct {
	Consecutive5xx     int   `json:"consecutive_5xx"`
	Interval           int64 `json:"interval_ms"`
	BaseEjectionTime   int64 `json:"base_ejection_time_ms"`
	MaxEjectionPercent int   `json:"max_ejection_percent"`
}

// turn says what was so in v1 without saying: one host may always be ejected,
// and for as long as it grows.
func (d *outliers) turn() object {
	const tenYears = 10 * 365 * 24 * 3600 * 1000
	o := object{"always_eject_one_host": true, "max_ejection_time": duration(tenYears)}
	if d.Consecutive5xx > 0 {
		o["consecutive_5xx"] = d.Consecutive5xx
	}
	if d.Interval > 0 {
		o["interval"] = duration(d.Interval)
	}
	if d.BaseEjectionTime > 0 {
		o["base_ejection_time"] = duration(d.BaseEjectionTime)
	}
	if d.MaxEjectionPercent > 0 {
		o["max_ejection_percent"] = d.MaxEjectionPercent
	}
	return o
}
