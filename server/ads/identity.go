package ads

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/proxied"
	"github.com/pilot-api/pilot-api/server/proxyauth"
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
	if s.opts.Proxies != nil {
		proof, err := s.prove(ctx, true)
		if err != nil {
			return discovery.KeyScope{}
		}
		return discovery.KeysOfNamespace(proof.Namespace)
	}
	certificate := clientCertificate(ctx)
	switch {
	case certificate == nil:
		return discovery.KeyScope{}
	case len(certificate.URIs) == 0:
		return discovery.AllKeys()
	}
	namespace, _, err := proxyauth.SPIFFE(certificate.URIs, s.opts.Discovery.TrustDomain())
	switch {
	case err != nil:
		return discovery.KeyScope{}
	case namespace == s.opts.Discovery.RootNamespace():
		return discovery.AllKeys()
	}
	return discovery.KeysOfNamespace(namespace)
}

// admit refuses a proxy whose client certificate counts no longer, or is not for the
// namespace of its node. A certificate with a URI is for the namespace of its SPIFFE ID, or
// for no namespace if the ID is not understood. A certificate without a URI is for every
// namespace. Without a client certificate, admit trusts the node. again means that the proxy
// was admitted to this stream before.
func (s *Server) admit(ctx context.Context, node discovery.Node, again bool) error {
	if err := s.verify(ctx); err != nil {
		return err
	}
	if c := connectionOf(ctx); s.opts.Proxies != nil && (c == nil || !c.private) {
		return s.admitProved(ctx, node, again)
	}
	certificate := clientCertificate(ctx)
	if certificate == nil || len(certificate.URIs) == 0 {
		return nil
	}
	namespace, _, err := proxyauth.SPIFFE(certificate.URIs, s.opts.Discovery.TrustDomain())
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

// verify refuses a proxy whose client certificate counts no longer, and then ends its
// connection: only another connection can show another certificate.
func (s *Server) verify(ctx context.Context) error {
	conn := proxyauth.ConnectionState(ctx)
	if s.opts.Certificates == nil || conn == nil || len(conn.VerifiedChains) == 0 {
		return nil
	}
	err := s.opts.Certificates(conn)
	if err == nil {
		return nil
	}
	if c := connectionOf(ctx); c != nil {
		c.sayFarewell()
	}
	return status.Errorf(codes.Unauthenticated, "the client certificate proves nothing any more: %v", err)
}

// prove returns the proof of the proxy of a stream, which may have been proved before.
func (s *Server) prove(ctx context.Context, again bool) (proxyauth.Proof, error) {
	shown := proxyauth.CredentialsOf(ctx)
	shown.Again = again
	return s.opts.Proxies.Prove(shown)
}

// statusOf returns the status for an error of a Prover.
func statusOf(err error) error {
	switch {
	case errors.Is(err, proxyauth.ErrUndecided):
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, proxyauth.ErrForbidden):
		return status.Error(codes.PermissionDenied, err.Error())
	}
	return status.Error(codes.Unauthenticated, err.Error())
}

// admitProved refuses a proxy that does not prove itself, or claims more than it may.
func (s *Server) admitProved(ctx context.Context, node discovery.Node, again bool) error {
	proof, err := s.prove(ctx, again)
	if err != nil {
		return statusOf(err)
	}
	namespace, err := s.opts.Discovery.NamespaceOf(node)
	if err != nil {
		return err
	}
	role, _, _ := strings.Cut(node.ID, "~")
	if err := s.opts.Proxies.Admit(ctx, proof, proxyauth.Claim{Node: node.ID, Namespace: namespace, Role: role, Labels: node.Labels != ""}); err != nil {
		return statusOf(err)
	}
	return nil
}

// countStream counts the stream of an admitted proxy until closed is called.
func (s *Server) countStream(ctx context.Context, node discovery.Node, onlySecrets bool) (closed func(), err error) {
	if c := connectionOf(ctx); s.opts.Proxies == nil || c != nil && c.private {
		return func() {}, nil
	}
	proof, err := s.prove(ctx, true)
	switch {
	case err != nil:
	case onlySecrets:
		closed, err = s.opts.Proxies.OpenSecrets(proof)
	default:
		closed, err = s.opts.Proxies.Open(proof, node.ID)
	}
	if err != nil {
		return nil, statusOf(err)
	}
	return closed, nil
}

// proofInterval is how often the proof of a stream is looked at again.
const proofInterval = 5 * time.Second

// whileProved ends a stream whose proxy no longer proves itself or may no longer claim what it
// claims, until stop is called.
func (s *Server) whileProved(ctx context.Context, node discovery.Node, end context.CancelCauseFunc) (stop func()) {
	c := connectionOf(ctx)
	lasts := s.opts.Proxies == nil && (s.opts.Certificates == nil || clientCertificate(ctx) == nil)
	if lasts || c != nil && c.private {
		return func() {}
	}
	var look *time.Timer
	var mu sync.Mutex
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	look = time.AfterFunc(proofInterval, func() {
		if err := s.admit(ctx, node, true); err != nil {
			end(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			look.Reset(proofInterval)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		look.Stop()
	}
}

// clientCertificate returns the verified client certificate of a connection, or
// nil.
func clientCertificate(ctx context.Context) *x509.Certificate {
	conn := proxyauth.ConnectionState(ctx)
	if conn == nil || len(conn.VerifiedChains) == 0 {
		return nil
	}
	return conn.PeerCertificates[0]
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
