package ads_test

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/server/ads"
)

// TestClientCertificate: who shows none of the right authority is not let in, and one
// for a namespace is for proxies of that namespace alone.
func TestClientCertificate(t *testing.T) {
	const ours, shop = "spiffe://cluster.local/ns/default/sa/web", "spiffe://cluster.local/ns/shop/sa/web"
	inDefault, nowhere := &corev3.Node{Id: nodeA}, &corev3.Node{Id: "sidecar~10.9.0.1~a.default~elsewhere.example"}
	inShop := &corev3.Node{Id: nodeA, Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"NAMESPACE": structpb.NewStringValue("shop")}}}
	for _, tc := range []struct {
		name  string
		node  *corev3.Node
		shows []string
		code  codes.Code
		words string
	}{
		{"for its namespace", inDefault, []string{ours}, codes.OK, ""},
		{"for the one that it states", inShop, []string{shop}, codes.OK, ""},
		{"for no namespace", inDefault, nil, codes.OK, ""},
		{"for something else", inDefault, []string{"spiffe://cluster.local/web", "https://a.example/ns/shop/sa/web"}, codes.OK, ""},
		{"for another namespace", inDefault, []string{shop}, codes.PermissionDenied, `of namespace "default", and its client certificate is for ` + shop},
		{"for another than it states", inShop, []string{ours}, codes.PermissionDenied, `of namespace "shop"`},
		{"of a proxy of no namespace", nowhere, []string{ours}, codes.PermissionDenied, `of namespace ""`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := selfsigned.NewAuthority(t, t.TempDir())
				c := converse(t, a, shown(t, a, "client.example", tc.shows...), tc.node)
				if tc.code == codes.OK {
					c.one()
				} else if code := c.ended(); code != tc.code || !strings.Contains(c.err.Error(), tc.words) {
					t.Errorf("ended with %v", c.err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		a, other := selfsigned.NewAuthority(t, t.TempDir()), selfsigned.NewAuthority(t, t.TempDir())
		for _, shows := range [][]tls.Certificate{nil, shown(t, other, "client.example", ours)} {
			s := mutual(t, a, shows)
			conn := s.dial()
			_, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
			if status.Code(err) != codes.Unavailable {
				t.Errorf("who shows %d certificates, of another authority, gets %v", len(shows), err)
			}
			conn.Close()
		}
	})
}

// converse asks for clusters with these certificates.
func converse(t *testing.T, a *selfsigned.Authority, shows []tls.Certificate, node *corev3.Node) *client {
	c := mutual(t, a, shows).connectAs(delta, node, nil)
	c.subscribe(cds)
	synctest.Wait()
	return c
}

// mutual is a server that takes clients of the authority, to whom these certificates
// are shown. It must be made in a bubble, for certificates last an hour by its clock.
func mutual(t *testing.T, a *selfsigned.Authority, shows []tls.Certificate) *server {
	authorities := x509.NewCertPool()
	authorities.AddCert(a.Certificate)
	s := serveAs(t, ads.Options{TLS: &tls.Config{
		Certificates: shown(t, a, "replica.example"), ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities,
	}}, newSource(service("web.example", 80, 1, "v1")))
	s.speaks = credentials.NewTLS(&tls.Config{ServerName: "replica.example", RootCAs: authorities, Certificates: shows})
	return s
}

func shown(t *testing.T, a *selfsigned.Authority, host string, uris ...string) []tls.Certificate {
	certificate, key := a.PEM(t, host, uris...)
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return []tls.Certificate{pair}
}
