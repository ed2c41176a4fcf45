package ads

import (
	"context"
	"fmt"

	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/proxyauth"
)

// secretService is the SecretDiscoveryService, for an Envoy whose bootstrap takes secrets from
// a source of its own and not from ADS. Such an Envoy opens a stream for each secret. It has
// no FetchSecrets: Envoys that poll use REST.
type secretService struct {
	secretv3.UnimplementedSecretDiscoveryServiceServer
	server *Server
}

// StreamSecrets is the state-of-the-world variant.
func (s *secretService) StreamSecrets(stream secretv3.SecretDiscoveryService_StreamSecretsServer) error {
	return s.server.run(stream, discovery.StateOfTheWorld, decodeWorld, true)
}

// DeltaSecrets is the delta variant.
func (s *secretService) DeltaSecrets(stream secretv3.SecretDiscoveryService_DeltaSecretsServer) error {
	return s.server.run(stream, discovery.Delta, decodeDelta, true)
}

// forSecrets refuses a request for another type. A request need not name the type.
func forSecrets(r *discovery.Request) error {
	switch r.TypeURL {
	case discovery.SecretType:
	case "":
		r.TypeURL = discovery.SecretType
	default:
		return status.Errorf(codes.InvalidArgument, "a stream of secrets has no resources of type %q: want %q", r.TypeURL, discovery.SecretType)
	}
	return nil
}

// WorkloadSecrets has the secrets of workloads that are in no configuration, such as their
// certificates. The proxies of a workload may ask for them over ADS and over streams of
// secrets. Its methods are safe for concurrent use.
type WorkloadSecrets interface {
	// Of returns the secrets for the proxies of a service account, nil if it has none.
	Of(namespace, account string) discovery.WorkloadSecrets
}

// addSecrets gives a stream the secrets of its proxy's workload, if the proxy has proved
// which one that is. The caller must have called admit.
func (s *Server) addSecrets(ctx context.Context, to *discovery.Stream) {
	if s.opts.Secrets == nil {
		return
	}
	namespace, account, proved := s.accountOf(ctx)
	if !proved {
		return
	}
	if of := s.opts.Secrets.Of(namespace, account); of != nil {
		to.AddSecrets(of)
	}
}

// accountOf returns the service account that the proxy of a stream has proved.
func (s *Server) accountOf(ctx context.Context) (namespace, account string, proved bool) {
	if c := connectionOf(ctx); c != nil && c.private {
		return "", "", false // Its user may state any account, and proves none.
	}
	if s.opts.Proxies != nil {
		proof, err := s.prove(ctx, true)
		return proof.Namespace, proof.Account, err == nil
	}
	certificate := clientCertificate(ctx)
	if certificate == nil {
		return "", "", false
	}
	namespace, account, err := proxyauth.SPIFFE(certificate.URIs, s.opts.Discovery.TrustDomain())
	return namespace, account, err == nil
}

// connectSecrets begins a stream of secrets.
func (s *Server) connectSecrets(who *who, variant discovery.Variant) (*discovery.Stream, error) {
	if who.proxyless {
		return nil, fmt.Errorf("%w: gRPC without a proxy is sent no secrets", discovery.ErrBadNode)
	}
	return s.opts.Discovery.ConnectSecrets(who.node, variant)
}
