package envoy

import (
	"encoding/json"
	"net"
	"strconv"
)

// The bootstrap clusters of a v1 Envoy, all of which lead to this server. The name
// is also the Host header of its polls.
const (
	ldsClusterV1 = "lds"
	cdsClusterV1 = "cds"
	sdsClusterV1 = "sds"
)

func bootstrapV1(o BootstrapOptions, servers replicas) ([]byte, error) {
	delay := o.RefreshDelay.Milliseconds()
	to := func(name string) object { return clusterV1(name, o, servers) }
	text, err := json.MarshalIndent(object{
		"listeners": list{},
		"lds":       object{"cluster": ldsClusterV1, "refresh_delay_ms": delay},
		"admin": object{
			"access_log_path": "/dev/null",
			"address":         tcpURL("127.0.0.1", o.AdminPort),
		},
		"cluster_manager": object{
			"clusters": list{to(RDSClusterV1), to(ldsClusterV1)},
			"cds":      object{"cluster": to(cdsClusterV1), "refresh_delay_ms": delay},
			"sds":      object{"cluster": to(sdsClusterV1), "refresh_delay_ms": delay},
		},
	}, "", "  ")
	return append(text, '\n'), err
}

func clusterV1(name string, o BootstrapOptions, servers replicas) object {
	hosts := list{}
	for _, e := range servers {
		hosts = append(hosts, object{"url": tcpURL(e.host, e.port)})
	}
	c := object{
		"name":               name,
		"type":               "static",
		"connect_timeout_ms": 1000,
		"lb_type":            "round_robin",
		"hosts":              hosts,
	}
	if servers.named() {
		c["type"] = "strict_dns"
	}
	if len(servers) > 1 {
		c["outlier_detection"] = object{"consecutive_5xx": 2, "base_ejection_time_ms": 5000, "max_ejection_percent": 100}
	}
	if servers.tls() {
		c["ssl_context"] = tlsV1(o, servers)
	}
	return c
}

// tlsV1 uses one server name for all servers, because v1 supports only one.
func tlsV1(o BootstrapOptions, servers replicas) object {
	tls := object{"ca_cert_file": o.CAFile, "verify_subject_alt_name": servers.hosts()}
	for _, e := range servers {
		if !e.isIP() {
			tls["sni"] = e.host
			break
		}
	}
	return tls
}

func tcpURL(host string, port int) string {
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port))
}
