package evaluator

import (
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

func (r *v3Reader) clientTLS(at string, socket *corev3.TransportSocket) *TLS {
	if socket == nil {
		return nil
	}
	r.only(at, socket, "name", "typed_config")
	context := &tlsv3.UpstreamTlsContext{}
	if !r.unpack(at, socket.GetTypedConfig(), context) {
		return nil
	}
	r.only(at, context, "common_tls_context", "sni")
	out := &TLS{SNI: context.GetSni()}
	common := context.GetCommonTlsContext()
	if common == nil {
		return out
	}
	r.only(at, common, "tls_certificates", "validation_context")
	out.CertificateFile, out.KeyFile = r.certificate(at, common)
	if v := common.GetValidationContext(); v != nil {
		r.only(at, v, "trusted_ca", "match_typed_subject_alt_names", "crl")
		out.CAFile = r.file(at, v.GetTrustedCa())
		if crl := v.GetCrl(); crl != nil {
			out.CRLFile = r.file(at, crl)
		}
		out.SubjectAltNames = r.subjectAltNames(at, v)
	}
	return out
}

// subjectAltNames are each once, whatever type the name may be of.
func (r *v3Reader) subjectAltNames(at string, v *tlsv3.CertificateValidationContext) []string {
	var names []string
	for _, m := range v.GetMatchTypedSubjectAltNames() {
		r.only(at, m, "san_type", "matcher")
		r.only(at, m.GetMatcher(), "exact")
		names = append(names, m.GetMatcher().GetExact())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *v3Reader) serverTLS(at string, socket *corev3.TransportSocket, out *Traits) {
	if socket == nil {
		return
	}
	r.only(at, socket, "name", "typed_config")
	context := &tlsv3.DownstreamTlsContext{}
	if !r.unpack(at, socket.GetTypedConfig(), context) {
		return
	}
	r.only(at, context, "common_tls_context", "require_client_certificate")
	common := context.GetCommonTlsContext()
	r.only(at, common, "tls_certificates", "alpn_protocols", "validation_context", "tls_params")
	shown := common.GetTlsCertificates()
	other := &tlsv3.CommonTlsContext{TlsParams: common.GetTlsParams()}
	if len(shown) > 1 {
		other.TlsCertificates = shown[1:]
		common.TlsCertificates = shown[:1]
	}
	out.CertificateFile, out.KeyFile = r.certificate(at, common)
	out.Ciphers = strings.Join(common.GetTlsParams().GetCipherSuites(), ":")
	if other.TlsParams != nil {
		other.TlsParams = proto.Clone(other.TlsParams).(*tlsv3.TlsParameters)
		other.TlsParams.CipherSuites = nil
	}
	if v := common.GetValidationContext(); v != nil {
		r.only(at, v, "trusted_ca", "match_typed_subject_alt_names", "crl", "verify_certificate_spki", "verify_certificate_hash", "trust_chain_verification")
		out.ClientOptional = !context.GetRequireClientCertificate().GetValue()
		out.ClientCAFile, out.ClientNames = r.file(at, v.GetTrustedCa()), strings.Join(r.subjectAltNames(at, v), ",")
		rest := proto.Clone(v).(*tlsv3.CertificateValidationContext)
		rest.TrustedCa, rest.MatchTypedSubjectAltNames = nil, nil
		other.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: rest}
	}
	out.OtherTLS = prototext.Format(other)
	out.ALPN = strings.Join(common.GetAlpnProtocols(), ",")
}

func (r *v3Reader) certificate(at string, common *tlsv3.CommonTlsContext) (certificate, key string) {
	r.require(len(common.GetTlsCertificates()) <= 1, at, "more than one certificate is not known here")
	for _, c := range common.GetTlsCertificates() {
		r.only(at, c, "certificate_chain", "private_key")
		certificate, key = r.file(at, c.GetCertificateChain()), r.file(at, c.GetPrivateKey())
	}
	return certificate, key
}
