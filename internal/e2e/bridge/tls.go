package bridge

import "strings"

const tlsSocket = "envoy.transport_sockets.tls"

// ownTLS is the certificate that one side presents.
type ownTLS struct {
	ALPN        string `json:"alpn_protocols"`
	Certificate string `json:"cert_chain_file"`
	Key         string `json:"private_key_file"`
}

type clientTLS struct {
	ownTLS
	CA           string   `json:"ca_cert_file"`
	SubjectNames []string `json:"verify_subject_alt_name"`
	SNI          string   `json:"sni"`
}

func (t *clientTLS) turn() object {
	common := t.common()
	if t.CA != "" {
		common["validation_context"] = object{
			"trusted_ca":                    file(t.CA),
			"match_typed_subject_alt_names": subjectNames(t.SubjectNames),
		}
	}
	config := object{"common_tls_context": common}
	if t.SNI != "" {
		config["sni"] = t.SNI
	}
	return typed(tlsSocket, "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", config)
}

// subjectNames converts names. V1 compared them with DNS names and URIs.
func subjectNames(names []string) list {
	out := list{}
	for _, name := range names {
		for _, kind := range []string{"DNS", "URI"} {
			out = append(out, object{"san_type": kind, "matcher": object{"exact": name}})
		}
	}
	return out
}

type serverTLS struct {
	ownTLS
	CA                       string `json:"ca_cert_file"`
	RequireClientCertificate bool   `json:"require_client_certificate"`
}

func (t *serverTLS) turn() object {
	common := t.common()
	if t.CA != "" {
		common["validation_context"] = object{"trusted_ca": file(t.CA)}
	}
	return typed(tlsSocket, "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext", object{
		"common_tls_context":         common,
		"require_client_certificate": t.RequireClientCertificate,
	})
}

func (t *ownTLS) common() object {
	o := object{}
	if t.ALPN != "" {
		o["alpn_protocols"] = strings.Split(t.ALPN, ",")
	}
	if t.Certificate != "" || t.Key != "" {
		o["tls_certificates"] = list{object{"certificate_chain": file(t.Certificate), "private_key": file(t.Key)}}
	}
	return o
}

func file(name string) object { return object{"filename": name} }
