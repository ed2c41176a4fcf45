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

// service returns the name of the cluster's endpoints in SDS.
func (c *cluster) service() string {
	if c.ServiceName != "" {
		return c.ServiceName
	}
	return c.Name
}

// servicesOf returns the services whose endpoints clusters need.
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
		"sds": "STATIC", "static": "STATIC", "strict_dns": "STRICT_DNS", "logical_dns": "LOGICAL_DNS", "original_dst": "ORIGINAL_DST",
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

// addProtocol adds the settings of connections to the hosts.
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
