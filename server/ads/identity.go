package ads

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/pilot-api/pilot-api/discovery"
)

// transport is plain text for nil.
func transport(config *tls.Config) credentials.TransportCredentials {
	if config == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(config)
}

// admit refuses a proxy that is of another namespace than its client certificate is
// for. A certificate that names no namespace is for all; where none is asked for,
// everybody is taken at their word.
func (s *Server) admit(ctx context.Context, node discovery.Node) error {
	ids := identities(ctx)
	if len(ids) == 0 {
		return nil
	}
	own, err := s.opts.Discovery.NamespaceOf(node)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(ids, func(id *url.URL) bool { return namespaceIn(id) == own }) {
		return nil
	}
	return status.Error(codes.PermissionDenied, fmt.Sprintf(
		"%s says that it is of namespace %q, and its client certificate is for %s: give it one of its own namespace",
		node.ID, own, ids[0]))
}

// identities are the SPIFFE IDs of a verified client certificate that name a
// namespace.
func identities(ctx context.Context) []*url.URL {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return nil
	}
	ids := slices.Clone(info.State.VerifiedChains[0][0].URIs)
	return slices.DeleteFunc(ids, func(id *url.URL) bool { return namespaceIn(id) == "" })
}

// namespaceIn is that of spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT, as Istio
// writes it; "" for any other.
func namespaceIn(id *url.URL) string {
	parts := strings.Split(strings.TrimPrefix(id.Path, "/"), "/")
	if id.Scheme != "spiffe" || len(parts) != 4 || parts[0] != "ns" || parts[2] != "sa" {
		return ""
	}
	return parts[1]
}
