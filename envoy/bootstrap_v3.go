package envoy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/internal/envoylimits/re2"
)

// warnRegexProgram is the size from which an Envoy logs that an expression is
// large.
const warnRegexProgram = 1_000

// object is a piece of YAML or JSON; its keys are written sorted.
type object = map[string]any

type list = []any

// chosenAdminPort is the comment above a bootstrap without an admin port.
const chosenAdminPort = "# The Envoy takes a free port for its own interface: envoy --admin-address-path FILE writes it there.\n"

func bootstrapV3(o BootstrapOptions, servers replicas) ([]byte, error) {
	text, err := yaml.Marshal(object{
		"node": node(o),
		"admin": object{
			"address": socketAddress("127.0.0.1", o.AdminPort),
		},
		"dynamic_resources": dynamicResources(o),
		"layered_runtime": object{"layers": list{object{
			"name": "pilot-api",
			"static_layer": object{
				"re2.max_program_size.error_level": re2.EnvoyProgram,
				"re2.max_program_size.warn_level":  warnRegexProgram,
			},
		}}},
		"static_resources": object{"clusters": list{discoveryCluster(o, servers)}},
	})
	if o.AdminPort == 0 {
		text = append([]byte(chosenAdminPort), text...)
	}
	return text, err
}

func node(o BootstrapOptions) object {
	out := object{"id": o.NodeID, "cluster": o.Cluster}
	if len(o.Labels) > 0 {
		out["metadata"] = object{"LABELS": o.Labels}
	}
	if o.Locality != "" {
		locality := object{}
		for i, part := range strings.Split(o.Locality, "/") {
			locality[[]string{"region", "zone", "sub_zone"}[i]] = part
		}
		out["locality"] = locality
	}
	return out
}

func dynamicResources(o BootstrapOptions) object {
	if !o.API.Streams() {
		return object{"cds_config": restSource(o.RefreshDelay), "lds_config": restSource(o.RefreshDelay)}
	}
	kind := "GRPC"
	if o.API == Delta {
		kind = "DELTA_GRPC"
	}
	streamed := object{"resource_api_version": "V3", "ads": object{}}
	return object{
		"cds_config": streamed,
		"lds_config": streamed,
		"ads_config": object{
			"api_type":              kind,
			"transport_api_version": "V3",
			// Otherwise each message has the node, about 60 KB.
			"set_node_on_first_message_only": true,
			"grpc_services": list{object{"envoy_grpc": object{
				"cluster_name": DiscoveryCluster,
				// Without it an Envoy may notice only after half a minute that a
				// server is back.
				"retry_policy": object{"retry_back_off": object{"base_interval": "0.2s", "max_interval": "3s"}},
			}}},
		},
	}
}

func restSource(delay time.Duration) object {
	return object{
		"resource_api_version": "V3",
		"api_config_source": object{
			"api_type":              "REST",
			"transport_api_version": "V3",
			"cluster_names":         list{DiscoveryCluster},
			"refresh_delay":         seconds(delay),
			"request_timeout":       "5s",
		},
	}
}

func discoveryCluster(o BootstrapOptions, servers replicas) object {
	c := object{
		"name":            DiscoveryCluster,
		"connect_timeout": "1s",
		"type":            "STATIC",
		"load_assignment": object{"cluster_name": DiscoveryCluster, "endpoints": localities(servers)},
	}
	if servers.named() {
		c["type"] = "STRICT_DNS"
		c["dns_lookup_family"] = "V4_ONLY"
	}
	if servers.several() {
		leaveDead(c)
	}
	if protocol := protocolOptions(o); protocol != nil {
		protocol["@type"] = "type.googleapis.com/" + httpProtocolOptions
		c["typed_extension_protocol_options"] = object{httpProtocolOptions: protocol}
	}
	if servers.tls() {
		secure(c, o, servers)
	}
	return c
}

const httpProtocolOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// protocolOptions returns how the Envoy sends requests to servers, nil for the default.
func protocolOptions(o BootstrapOptions) object {
	config := object{"http_protocol_options": object{}}
	if o.API.Streams() {
		config = object{"http2_protocol_options": object{
			// So the Envoy leaves a server that hangs with open connections.
			"connection_keepalive": object{"interval": "10s", "timeout": "5s"},
		}}
	}
	switch {
	case o.XDSTokenFile != "":
		return object{"explicit_http_config": config, "http_filters": list{tokenFilter(o.XDSTokenFile), upstreamCodec}}
	case o.API.Streams():
		return object{"explicit_http_config": config}
	}
	return nil
}

// tokenSecret is the name of the secret in a token file.
const tokenSecret = "xds-token"

// tokenFilter adds the token of a file to each request.
func tokenFilter(file string) object {
	return object{"name": "envoy.filters.http.credential_injector", "typed_config": object{
		"@type":     "type.googleapis.com/envoy.extensions.filters.http.credential_injector.v3.CredentialInjector",
		"overwrite": true,
		"credential": object{"name": "envoy.http.injected_credentials.generic", "typed_config": object{
			"@type":  "type.googleapis.com/envoy.extensions.http.injected_credentials.generic.v3.Generic",
			"header": "authorization",
			"credential": object{"name": tokenSecret, "sds_config": object{
				"resource_api_version": "V3", "path_config_source": object{"path": file},
			}},
		}},
	}}
}

// upstreamCodec ends the filters of a cluster.
var upstreamCodec = object{"name": "envoy.filters.http.upstream_codec", "typed_config": object{
	"@type": "type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec",
}}

// TokenSecret returns the content of the file from which an Envoy takes the token by which it
// proves itself to the server. Replace the file as a whole, by a rename: the Envoy notices
// nothing else.
func TokenSecret(token string) ([]byte, error) {
	return yaml.Marshal(object{"resources": list{object{
		"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "name": tokenSecret,
		"generic_secret": object{"secret": object{"inline_string": "Bearer " + token}},
	}}})
}

// localities puts each replica into a priority of its own: the next is used only
// while all before it have failed.
func localities(servers replicas) list {
	var out list
	for i, e := range servers {
		locality := object{"lb_endpoints": list{object{"endpoint": object{"address": e.address()}}}}
		if i > 0 {
			locality["priority"] = i
		}
		out = append(out, locality)
	}
	return out
}

// leaveDead makes the proxy avoid a replica that fails, for longer after repeated
// failures. The time is short, because after a restart of all replicas none should
// be avoided. If all have failed, all are used.
func leaveDead(c object) {
	c["outlier_detection"] = object{
		"split_external_local_origin_errors":  true,
		"consecutive_local_origin_failure":    1, // It cannot be reached, or closes connections.
		"consecutive_5xx":                     2,
		"enforcing_success_rate":              0,
		"enforcing_local_origin_success_rate": 0,
		"interval":                            "1s",
		"base_ejection_time":                  "5s",
		"max_ejection_time":                   "30s",
		"max_ejection_percent":                100,
	}
	c["common_lb_config"] = object{"healthy_panic_threshold": object{"value": 1}}
}

// secure requires each server to prove that it is the named one.
func secure(c object, o BootstrapOptions, servers replicas) {
	if len(servers.hosts()) == 1 {
		c["transport_socket"] = verifiedTLS(o, servers[0])
		return
	}
	var matches list
	for i, e := range servers {
		this := object{"host": e.host}
		lb := c["load_assignment"].(object)["endpoints"].(list)[i].(object)["lb_endpoints"].(list)[0].(object)
		lb["metadata"] = object{"filter_metadata": object{"envoy.transport_socket_match": this}}
		if slices.Contains(servers[:i].hosts(), e.host) {
			continue
		}
		matches = append(matches, object{"name": e.host, "match": this, "transport_socket": verifiedTLS(o, e)})
	}
	c["transport_socket_matches"] = matches
}

// verifiedTLS accepts only a certificate for the server's name or address.
func verifiedTLS(o BootstrapOptions, server endpoint) object {
	kind := "DNS"
	config := object{"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"}
	if server.isIP() {
		kind = "IP_ADDRESS"
	} else {
		config["sni"] = server.host
	}
	context := object{"validation_context": object{
		"trusted_ca": object{"filename": o.authorities()},
		"match_typed_subject_alt_names": list{
			object{"san_type": kind, "matcher": object{"exact": server.host}},
		},
	}}
	if o.XDSCertFile != "" {
		context["tls_certificates"] = list{object{
			"certificate_chain": object{"filename": o.XDSCertFile}, "private_key": object{"filename": o.XDSKeyFile},
		}}
	}
	config["common_tls_context"] = context
	return object{"name": "envoy.transport_sockets.tls", "typed_config": config}
}

func socketAddress(host string, port int) object {
	return object{"socket_address": object{"address": host, "port_value": port}}
}

// seconds formats a duration as protobuf JSON does: "0.2s".
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}
