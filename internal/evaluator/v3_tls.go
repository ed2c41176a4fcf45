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
	r.only(at, common, "tls_certificates", "tls_certificate_sds_secret_configs", "alpn_protocols", "validation_context", "combined_validation_context")
	out.CertificateFile, out.KeyFile = r.certificate(at, common)
	if v, authorities := r.validation(at, common); v != nil {
		r.only(at, v, "trusted_ca", "match_typed_subject_alt_names", "crl")
		out.CAFile = authorities
		if crl := v.GetCrl(); crl != nil {
			out.CRLFile = r.file(at, crl)
		}
		out.SubjectAltNames = r.subjectAltNames(at, v)
	}
	return out
}

// subjectAltNames returns each name once, whatever its types.
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
	r.only(at, common, "tls_certificates", "tls_certificate_sds_secret_configs", "alpn_protocols", "validation_context", "combined_validation_context", "tls_params")
	other := &tlsv3.CommonTlsContext{TlsParams: common.GetTlsParams()}
	if shown := common.GetTlsCertificates(); len(shown) > 1 {
		other.TlsCertificates = shown[1:]
		common.TlsCertificates = shown[:1]
	}
	if shown := common.GetTlsCertificateSdsSecretConfigs(); len(shown) > 1 {
		other.TlsCertificateSdsSecretConfigs = shown[1:]
		common.TlsCertificateSdsSecretConfigs = shown[:1]
	}
	out.CertificateFile, out.KeyFile = r.certificate(at, common)
	out.Ciphers = strings.Join(common.GetTlsParams().GetCipherSuites(), ":")
	if other.TlsParams != nil {
		other.TlsParams = proto.Clone(other.TlsParams).(*tlsv3.TlsParameters)
		other.TlsParams.CipherSuites = nil
	}
	if v, authorities := r.validation(at, common); v != nil {
		r.only(at, v, "trusted_ca", "match_typed_subject_alt_names", "crl", "verify_certificate_spki", "verify_certificate_hash", "trust_chain_verification")
		out.ClientOptional = !context.GetRequireClientCertificate().GetValue()
		out.ClientCAFile, out.ClientNames = authorities, strings.Join(r.subjectAltNames(at, v), ",")
		rest := proto.Clone(v).(*tlsv3.CertificateValidationContext)
		rest.TrustedCa, rest.MatchTypedSubjectAltNames = nil, nil
		other.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: rest}
	}
	out.OtherTLS = prototext.Format(other)
	out.ALPN = strings.Join(common.GetAlpnProtocols(), ",")
}

// certificate returns the files of a certificate and its key, or the secret that holds
// both.
func (r *v3Reader) certificate(at string, common *tlsv3.CommonTlsContext) (certificate, key string) {
	files, secrets := common.GetTlsCertificates(), common.GetTlsCertificateSdsSecretConfigs()
	r.require(len(files)+len(secrets) <= 1, at, "more than one certificate is not known here")
	for _, c := range files {
		r.only(at, c, "certificate_chain", "private_key")
		certificate, key = r.file(at, c.GetCertificateChain()), r.file(at, c.GetPrivateKey())
	}
	for _, c := range secrets {
		certificate = r.secret(at, c)
		key = certificate
	}
	return certificate, key
}

// validation returns how the peer is verified, nil for no verification, and the file or
// secret with the authorities.
func (r *v3Reader) validation(at string, common *tlsv3.CommonTlsContext) (v *tlsv3.CertificateValidationContext, authorities string) {
	if both := common.GetCombinedValidationContext(); both != nil {
		r.only(at, both, "default_validation_context", "validation_context_sds_secret_config")
		v = both.GetDefaultValidationContext()
		r.require(v.GetTrustedCa() == nil, at, "authorities of a file beside those of a secret are not known here")
		return v, r.secret(at, both.GetValidationContextSdsSecretConfig())
	}
	if v = common.GetValidationContext(); v != nil {
		authorities = r.file(at, v.GetTrustedCa())
	}
	return v, authorities
}

func (r *v3Reader) secret(at string, c *tlsv3.SdsSecretConfig) string {
	r.only(at, c, "name", "sds_config")
	return "secret " + c.GetName()
}
