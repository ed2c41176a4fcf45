package envoy

import "sigs.k8s.io/yaml"

// WorkloadSecret returns the content of the file from which an Envoy takes the certificate of
// its workload (sdsFile of the mesh settings): a chain and its key in PEM. Replace the file as a
// whole, by a rename: the Envoy notices nothing else.
func WorkloadSecret(chain, key string) ([]byte, error) {
	return yaml.Marshal(object{"resources": list{object{
		"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "name": "default",
		"tls_certificate": object{
			"certificate_chain": object{"inline_string": chain}, "private_key": object{"inline_string": key},
		},
	}}})
}
