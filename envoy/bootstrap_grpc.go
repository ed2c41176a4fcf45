package envoy

import "encoding/json"

// bootstrapGRPC returns the file that gRPC reads through GRPC_XDS_BOOTSTRAP.
func bootstrapGRPC(o BootstrapOptions, servers replicas) ([]byte, error) {
	credentials := object{"type": "insecure"}
	if servers.tls() {
		config := object{"ca_certificate_file": o.authorities()}
		if o.XDSCertFile != "" {
			config["certificate_file"], config["private_key_file"] = o.XDSCertFile, o.XDSKeyFile
		}
		credentials = object{"type": "tls", "config": config}
	}
	var xds list
	for _, server := range servers {
		// It uses the next one if it can reach none before it.
		one := object{"server_uri": server.String(), "channel_creds": list{credentials}, "server_features": list{"xds_v3"}}
		if o.XDSTokenFile != "" {
			one["call_creds"] = list{object{"type": "jwt_token_file", "config": object{"jwt_token_file": o.XDSTokenFile}}}
		}
		xds = append(xds, one)
	}
	who := node(o)
	metadata := object{"GENERATOR": "grpc"} // as Istio names it
	if len(o.Labels) > 0 {
		metadata["LABELS"] = o.Labels
	}
	who["metadata"] = metadata
	text, err := json.MarshalIndent(object{
		"xds_servers": xds,
		"node":        who,
	}, "", "  ")
	return append(text, '\n'), err
}
