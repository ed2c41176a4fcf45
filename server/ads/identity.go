package ads

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/proxied"
)

// transport is plain text for nil.
func transport(config *tls.Config) credentials.TransportCredentials {
	if config == nil {
		return insecure.NewCredentials()
	}
	return tlsUnlessPrivate{credentials.NewTLS(config)}
}

// tlsUnlessPrivate is TLS, and plain text for connections of a private listener: those
// never leave the machine, and have proved who they are of.
type tlsUnlessPrivate struct {
	credentials.TransportCredentials
}

func (t tlsUnlessPrivate) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if c, ok := conn.(*connection); ok && c.private {
		return insecure.NewCredentials().ServerHandshake(conn)
	}
	return t.TransportCredentials.ServerHandshake(conn)
}

func (t tlsUnlessPrivate) Clone() credentials.TransportCredentials {
	return tlsUnlessPrivate{t.TransportCredentials.Clone()}
}

// keyScope returns the Secrets whose private keys the connection of a stream may receive:
// all of them over a private listener, and with a client certificate that has no SPIFFE
// ID or is for the root namespace; those of its namespace with any other client
// certificate; none without one. The caller has had admit check the certificate.
func (s *Server) keyScope(ctx context.Context) discovery.KeyScope {
	if c := connectionOf(ctx); c != nil && c.private {
		return discovery.AllKeys()
	}
	certificate := clientCertificate(ctx)
	switch {
	case certificate == nil:
		return discovery.KeyScope{}
	case len(certificate.URIs) == 0:
		return discovery.AllKeys()
	}
	namespace, err := namespaceIn(certificate.URIs, s.opts.Discovery.TrustDomain())
	switch {
	case err != nil:
		return discovery.KeyScope{}
	case namespace == s.opts.Discovery.RootNamespace():
		return discovery.AllKeys()
	}
	return discovery.KeysOfNamespace(namespace)
}

// admit refuses a proxy whose client certificate is not for the namespace that its node
// states. A certificate with a URI in it is for the namespace of its SPIFFE ID; one
// whose ID is not understood is for none. A certificate without a URI is for every
// namespace. Where no certificate is asked for, the node's word counts.
func (s *Server) admit(ctx context.Context, node discovery.Node) error {
	certificate := clientCertificate(ctx)
	if certificate == nil || len(certificate.URIs) == 0 {
		return nil
	}
	namespace, err := namespaceIn(certificate.URIs, s.opts.Discovery.TrustDomain())
	if err != nil {
		return status.Errorf(codes.PermissionDenied, "%s: its client certificate is for no proxy: %v", node.ID, err)
	}
	own, err := s.opts.Discovery.NamespaceOf(node)
	if err != nil {
		return err
	}
	if namespace != own {
		return status.Errorf(codes.PermissionDenied,
			"%s says that it is of namespace %q, and its client certificate is for %s: give it one of its own namespace",
			node.ID, own, certificate.URIs[0])
	}
	return nil
}

// clientCertificate is the verified one of a connection, nil for none.
func clientCertificate(ctx context.Context) *x509.Certificate {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return nil
	}
	return info.State.VerifiedChains[0][0]
}

// namespaceIn is that of the one SPIFFE ID that a certificate of a proxy has:
// spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT, as Istio writes it. The error says why
// the URIs are not such an ID of the trust domain.
func namespaceIn(uris []*url.URL, trustDomain string) (string, error) {
	if len(uris) != 1 {
		return "", fmt.Errorf("it has %d URIs, want one", len(uris))
	}
	// String keeps what is escaped, and spiffeid refuses a % in it.
	found := uris[0].String()
	wrong := func(why error) error {
		return fmt.Errorf("want spiffe://%s/ns/NAMESPACE/sa/ACCOUNT, found %q: %w", trustDomain, found, why)
	}
	id, err := spiffeid.FromString(found)
	switch {
	case err != nil:
		return "", wrong(err)
	case id.TrustDomain().Name() != trustDomain:
		return "", wrong(errors.New("it is of another trust domain"))
	}
	parts := strings.Split(id.Path(), "/")
	switch {
	case len(parts) != 5 || parts[1] != "ns" || parts[3] != "sa":
		return "", wrong(errors.New("its path has another form"))
	case len(validation.IsDNS1123Label(parts[2])) > 0:
		return "", wrong(errors.New("NAMESPACE must be the name of one"))
	}
	return parts[2], nil
}

// refuseProxied refuses a stream that a proxy has passed on: on a private listener the
// proxy of whoever may connect is not who asks.
func refuseProxied(ctx context.Context) error {
	headers, _ := metadata.FromIncomingContext(ctx)
	if sign := proxied.EnvoysOwn(headers); sign != "" {
		return status.Errorf(codes.PermissionDenied, "this socket is for Envoys of this machine and takes nothing that a proxy passes on, which the header %s shows", sign)
	}
	return nil
}
