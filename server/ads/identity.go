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

// transport returns credentials for config, or for plain text if it is nil.
func transport(config *tls.Config) credentials.TransportCredentials {
	if config == nil {
		return insecure.NewCredentials()
	}
	return tlsUnlessPrivate{credentials.NewTLS(config)}
}

// tlsUnlessPrivate is TLS, except for connections of a private listener, which use
// plain text: they never leave the machine and have proved who owns them.
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

// keyScope returns the Secrets whose private keys the connection of a stream may
// receive: all of them over a private listener, and with a client certificate that
// has no SPIFFE ID or is for the root namespace; those of its namespace with any
// other client certificate; none without one. The caller must have called admit to
// check the certificate.
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

// admit refuses a proxy whose client certificate is not for the namespace of its
// node. A certificate with a URI is for the namespace of its SPIFFE ID, or for no
// namespace if the ID is not understood. A certificate without a URI is for every
// namespace. Without a client certificate, admit trusts the node.
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

// clientCertificate returns the verified client certificate of a connection, or
// nil.
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

// namespaceIn returns the namespace of the one SPIFFE ID in a proxy's certificate:
// spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT, as Istio writes it. The error says
// why the URIs are not such an ID of the trust domain.
func namespaceIn(uris []*url.URL, trustDomain string) (string, error) {
	if len(uris) != 1 {
		return "", fmt.Errorf("it has %d URIs, want one", len(uris))
	}
	// String keeps escapes, and spiffeid refuses a % in them.
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

// refuseProxied refuses a stream that a proxy forwarded: the proxy may connect to a
// private listener, but its client may not.
func refuseProxied(ctx context.Context) error {
	headers, _ := metadata.FromIncomingContext(ctx)
	if sign := proxied.EnvoysOwn(headers); sign != "" {
		return status.Errorf(codes.PermissionDenied, "this socket is for Envoys of this machine and takes nothing that a proxy passes on, which the header %s shows", sign)
	}
	return nil
}
