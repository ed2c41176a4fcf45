package envoy

import (
	"encoding/json"
	"net"
	"strconv"
)

// The bootstrap clusters of a v1 Envoy, all of which lead to this server. The
// name is also the Host header of its polls.
const (
	ldsClusterV1 = "lds"
	cdsClusterV1 = "cds"
	sdsClusterV1 = "sds"
)

func bootstrapV1(o BootstrapOptions, server endpoint) ([]byte, error) {
	delay := o.RefreshDelay.Milliseconds()
	to := func(name string) object { return clusterV1(name, o, server) }
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

func clusterV1(name string, o BootstrapOptions, server endpoint) object {
	c := object{
		"name":               name,
		"type":               "static",
		"connect_timeout_ms": 1000,
		"lb_type":            "round_robin",
		"hosts":              list{object{"url": tcpURL(server.host, server.port)}},
	}
	if !server.isIP() {
		c["type"] = "strict_dns"
	}
	if server.tls {
		tls := object{"ca_cert_file": o.CAFile, "verify_subject_alt_name": list{server.host}}
		if !server.isIP() {
			tls["sni"] = server.host
		}
		c["ssl_context"] = tls
	}
	return c
}

func tcpURL(host string, port int) string {
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port))
}
