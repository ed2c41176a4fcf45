package v3

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/ir"
)

const tlsTransportSocket = "envoy.transport_sockets.tls"

func serverTLS(t *ir.ServerTLS) *corev3.TransportSocket {
	if t == nil {
		return nil
	}
	context := &tlsv3.DownstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
		TlsCertificates: certificates(t.CertificateFile, t.KeyFile),
		AlpnProtocols:   t.ALPN,
	}}
	if t.CAFile != "" {
		context.RequireClientCertificate = wrapperspb.Bool(true)
		context.CommonTlsContext.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{
			ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: file(t.CAFile)},
		}
	}
	return tlsSocket(context)
}

func clientTLS(t *ir.ClientTLS) *corev3.TransportSocket {
	if t == nil {
		return nil
	}
	context := &tlsv3.UpstreamTlsContext{Sni: t.SNI}
	if t.CertificateFile != "" || t.CAFile != "" {
		context.CommonTlsContext = clientCommon(t)
	}
	return tlsSocket(context)
}

func clientCommon(t *ir.ClientTLS) *tlsv3.CommonTlsContext {
	out := &tlsv3.CommonTlsContext{TlsCertificates: certificates(t.CertificateFile, t.KeyFile)}
	// Envoy refuses to look at names that no authority vouches for.
	if t.CAFile != "" {
		out.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: verification(t)}
	}
	return out
}

func verification(t *ir.ClientTLS) *tlsv3.CertificateValidationContext {
	out := &tlsv3.CertificateValidationContext{TrustedCa: file(t.CAFile)}
	for _, name := range t.SubjectAltNames {
		// v1 did not tell the two types of names apart.
		for _, of := range []tlsv3.SubjectAltNameMatcher_SanType{tlsv3.SubjectAltNameMatcher_DNS, tlsv3.SubjectAltNameMatcher_URI} {
			out.MatchTypedSubjectAltNames = append(out.MatchTypedSubjectAltNames,
				&tlsv3.SubjectAltNameMatcher{SanType: of, Matcher: exactly(name)})
		}
	}
	return out
}

func certificates(certificate, key string) []*tlsv3.TlsCertificate {
	if certificate == "" {
		return nil
	}
	return []*tlsv3.TlsCertificate{{CertificateChain: file(certificate), PrivateKey: file(key)}}
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
