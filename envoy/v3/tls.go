package v3

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/ir"
)

const tlsTransportSocket = "envoy.transport_sockets.tls"

func serverTLS(t *ir.ServerTLS, from Source) *corev3.TransportSocket {
	if t == nil {
		return nil
	}
	common := &tlsv3.CommonTlsContext{TlsParams: tlsParameters(t), AlpnProtocols: t.ALPN}
	for _, pair := range append([]ir.KeyPair{{CertificateFile: t.CertificateFile, KeyFile: t.KeyFile, SecretName: t.SecretName}}, t.Others...) {
		common.TlsCertificates = append(common.TlsCertificates, certificates(pair.CertificateFile, pair.KeyFile)...)
		common.TlsCertificateSdsSecretConfigs = append(common.TlsCertificateSdsSecretConfigs, secrets(pair.SecretName, certificateSource(t.SDS, from))...)
	}
	context := &tlsv3.DownstreamTlsContext{CommonTlsContext: common}
	if t.Client != nil {
		if !t.Client.Optional {
			context.RequireClientCertificate = wrapperspb.Bool(true)
		}
		verifyBy(common, clientVerification(t.Client), t.Client.CASecretName, authoritySource(t.SDS, from))
	}
	return tlsSocket(context)
}

// tlsParameters returns nil if the proxy chooses everything. For servers Envoy chooses TLS
// 1.2 to 1.3.
func tlsParameters(t *ir.ServerTLS) *tlsv3.TlsParameters {
	if t.MinVersion == "" && t.MaxVersion == "" && len(t.Ciphers) == 0 {
		return nil
	}
	return &tlsv3.TlsParameters{
		TlsMinimumProtocolVersion: tlsVersions[t.MinVersion],
		TlsMaximumProtocolVersion: tlsVersions[t.MaxVersion],
		CipherSuites:              t.Ciphers,
	}
}

var tlsVersions = map[ir.TLSVersion]tlsv3.TlsParameters_TlsProtocol{
	ir.TLS10: tlsv3.TlsParameters_TLSv1_0, ir.TLS11: tlsv3.TlsParameters_TLSv1_1,
	ir.TLS12: tlsv3.TlsParameters_TLSv1_2, ir.TLS13: tlsv3.TlsParameters_TLSv1_3,
}

func clientVerification(c *ir.ClientCertificate) *tlsv3.CertificateValidationContext {
	out := &tlsv3.CertificateValidationContext{
		TrustedCa:             optionalFile(c.CAFile),
		VerifyCertificateSpki: c.KeyHashes,
		VerifyCertificateHash: c.CertificateHashes,
		MatchTypedSubjectAltNames: anyOfNames(c.SubjectAltNames, tlsv3.SubjectAltNameMatcher_DNS, tlsv3.SubjectAltNameMatcher_URI,
			tlsv3.SubjectAltNameMatcher_EMAIL, tlsv3.SubjectAltNameMatcher_IP_ADDRESS),
	}
	out.MatchTypedSubjectAltNames = append(out.MatchTypedSubjectAltNames, uriWith(c.URIPrefix)...)
	if c.CRLFile != "" {
		out.Crl = file(c.CRLFile)
	}
	if c.Unverified {
		out.TrustChainVerification = tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED
	}
	return out
}

func anyOfNames(names []string, types ...tlsv3.SubjectAltNameMatcher_SanType) []*tlsv3.SubjectAltNameMatcher {
	var out []*tlsv3.SubjectAltNameMatcher
	for _, name := range names {
		for _, of := range types {
			out = append(out, &tlsv3.SubjectAltNameMatcher{SanType: of, Matcher: exactly(name)})
		}
	}
	return out
}

// uriWith matches URIs with a prefix; "" for none.
func uriWith(prefix string) []*tlsv3.SubjectAltNameMatcher {
	if prefix == "" {
		return nil
	}
	return []*tlsv3.SubjectAltNameMatcher{{
		SanType: tlsv3.SubjectAltNameMatcher_URI,
		Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix}},
	}}
}

func clientTLS(t *ir.ClientTLS, from Source) *corev3.TransportSocket {
	if t == nil {
		return nil
	}
	context := &tlsv3.UpstreamTlsContext{Sni: t.SNI}
	if t.CertificateFile != "" || t.Verifies() || t.UsesSecrets() {
		context.CommonTlsContext = clientCommon(t, from)
	}
	return tlsSocket(context)
}

func clientCommon(t *ir.ClientTLS, from Source) *tlsv3.CommonTlsContext {
	out := &tlsv3.CommonTlsContext{
		TlsCertificates:                certificates(t.CertificateFile, t.KeyFile),
		TlsCertificateSdsSecretConfigs: secrets(t.SecretName, certificateSource(t.SDS, from)),
		AlpnProtocols:                  t.ALPN,
	}
	if t.Verifies() {
		verifyBy(out, verification(t), t.CASecretName, authoritySource(t.SDS, from))
	}
	return out
}

// verifyBy sets the verification of peers, by authorities of the context or of a secret.
func verifyBy(common *tlsv3.CommonTlsContext, context *tlsv3.CertificateValidationContext, secret string, from *corev3.ConfigSource) {
	if secret == "" {
		common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: context}
		return
	}
	common.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{
		CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext: context, ValidationContextSdsSecretConfig: secrets(secret, from)[0],
		},
	}
}

// secrets returns the secret of a name, or none.
func secrets(name string, from *corev3.ConfigSource) []*tlsv3.SdsSecretConfig {
	if name == "" {
		return nil
	}
	return []*tlsv3.SdsSecretConfig{{Name: name, SdsConfig: from}}
}

// certificateSource returns where certificates come from.
func certificateSource(local ir.LocalSDS, from Source) *corev3.ConfigSource {
	if local.File == "" {
		return authoritySource(local, from)
	}
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: local.File}},
	}
}

// authoritySource returns where authorities come from.
func authoritySource(local ir.LocalSDS, from Source) *corev3.ConfigSource {
	if local.Socket == "" {
		return from.config()
	}
	// Envoy's own client of gRPC would need a cluster in the bootstrap.
	agent := &corev3.GrpcService_GoogleGrpc{TargetUri: "unix://" + local.Socket, StatPrefix: "workload_sds"}
	return &corev3.ConfigSource{
		ResourceApiVersion: corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType:             corev3.ApiConfigSource_GRPC,
			TransportApiVersion: corev3.ApiVersion_V3,
			GrpcServices:        []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{GoogleGrpc: agent}}},
		}},
	}
}

// Secret encodes a secret. The result must be sent to proxies only.
func Secret(s *ir.Secret) *tlsv3.Secret {
	out := &tlsv3.Secret{Name: s.Name}
	if s.Certificate == "" {
		context := &tlsv3.CertificateValidationContext{TrustedCa: inline(s.CACertificates)}
		if s.Revoked != "" {
			// Intermediate authorities need no list of their own issuer.
			context.Crl, context.OnlyVerifyLeafCertCrl = inline(s.Revoked), true
		}
		out.Type = &tlsv3.Secret_ValidationContext{ValidationContext: context}
		return out
	}
	out.Type = &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: inline(s.Certificate), PrivateKey: inline(s.Key.Reveal()),
	}}
	return out
}

func inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}

func verification(t *ir.ClientTLS) *tlsv3.CertificateValidationContext {
	out := &tlsv3.CertificateValidationContext{
		TrustedCa: optionalFile(t.CAFile),
		// v1 did not distinguish the two types of names.
		MatchTypedSubjectAltNames: anyOfNames(t.SubjectAltNames, tlsv3.SubjectAltNameMatcher_DNS, tlsv3.SubjectAltNameMatcher_URI),
	}
	out.MatchTypedSubjectAltNames = append(out.MatchTypedSubjectAltNames, uriWith(t.URIPrefix)...)
	if t.CRLFile != "" {
		out.Crl = file(t.CRLFile)
	}
	return out
}

func certificates(certificate, key string) []*tlsv3.TlsCertificate {
	if certificate == "" {
		return nil
	}
	return []*tlsv3.TlsCertificate{{CertificateChain: file(certificate), PrivateKey: file(key)}}
}

func optionalFile(path string) *corev3.DataSource {
	if path == "" {
		return nil
	}
	return file(path)
}

func file(path string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
}

func tlsSocket(context proto.Message) *corev3.TransportSocket {
	return &corev3.TransportSocket{
		Name:       tlsTransportSocket,
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: typed(context)},
	}
}
