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

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	meshsettings "github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/server/ads"
)

// TestClientCertificate checks that a client without a certificate of the right
// authority is refused, and that a certificate for a namespace is only for proxies
// of that namespace.
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
		{"for another namespace", inDefault, []string{shop}, codes.PermissionDenied, `of namespace "default", and its client certificate is for ` + shop},
		{"for another than it states", inShop, []string{ours}, codes.PermissionDenied, `of namespace "shop"`},
		{"for two namespaces", inDefault, []string{shop, ours}, codes.PermissionDenied, "is for no proxy: it has 2 URIs, want one"},
		{"of a proxy of no namespace", nowhere, []string{ours}, codes.PermissionDenied, `of namespace ""`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := selfsigned.NewAuthority(t, t.TempDir())
				s := mutual(t, a, shown(t, a, "client.example", tc.shows...))
				everything, secrets := s.connectAs(delta, tc.node, nil), s.connectSecrets(delta, tc.node)
				everything.subscribe(cds)
				secrets.subscribe(sds, "default/none")
				for _, c := range []*client{everything, secrets} {
					if tc.code == codes.OK {
						c.one()
					} else if code := c.ended(); code != tc.code || !strings.Contains(c.err.Error(), tc.words) {
						t.Errorf("ended with %v", c.err)
					}
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

// TestStrangeSPIFFEID checks that an ID which is not of a workload of this mesh
// admits no proxy, whatever namespace it states.
func TestStrangeSPIFFEID(t *testing.T) {
	nodes := []*corev3.Node{{Id: nodeA}, {Id: "sidecar~10.9.0.1~a.secret~secret.svc.cluster.local"}, {Id: "sidecar~10.9.0.1~a.default~elsewhere.example"}}
	for _, id := range []string{
		"spiffe://cluster.local",
		"spiffe://cluster.local/web",
		"spiffe://cluster.local/ns/secret",
		"spiffe://cluster.local/ns/secret/sa",
		"spiffe://cluster.local/ns/secret/sa/",
		"spiffe://cluster.local/ns//sa/x",
		"spiffe://cluster.local//ns/secret/sa/x",
		"spiffe://cluster.local/ns/secret/sa/x/y",
		"spiffe://cluster.local/ns/secret/sa/x/",
		"spiffe://cluster.local/x/ns/secret/sa/x",
		"spiffe://cluster.local/NS/secret/SA/x",
		"spiffe://cluster.local/ns/Secret/sa/x",
		"spiffe://cluster.local/ns/secret%2Fsa/sa/x",
		"spiffe://cluster.local/ns%2Fsecret%2Fsa%2Fx",
		"spiffe://cluster.local/ns/s%65cret/sa/x",
		"spiffe://cluster.local/ns/../sa/x",
		"spiffe://cluster.local/ns/default/../secret/sa/x",
		"spiffe://cluster.local/ns/secret/sa/x?a=b",
		"spiffe://cluster.local/ns/secret/sa/x#a",
		"spiffe://cluster.local:80/ns/secret/sa/x",
		"spiffe://a@cluster.local/ns/secret/sa/x",
		"spiffe://other.example/ns/secret/sa/x",
		"spiffe://cluster.local.other.example/ns/secret/sa/x",
		"spiffe:///ns/secret/sa/x",
		"spiffe:/ns/secret/sa/x",
		"https://cluster.local/ns/secret/sa/x",
		"urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8",
	} {
		t.Run(id, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := selfsigned.NewAuthority(t, t.TempDir())
				for _, node := range nodes {
					c := converse(t, a, shown(t, a, "client.example", id), node)
					if code := c.ended(); code != codes.PermissionDenied || !strings.Contains(c.err.Error(), "is for no proxy") {
						t.Errorf("as %s ended with %v", node.GetId(), c.err)
					}
				}
			})
		})
	}
}

// TestTrustDomain checks mesh settings whose trust domain differs from the domain
// of services.
func TestTrustDomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := selfsigned.NewAuthority(t, t.TempDir())
		settings := meshsettings.DefaultSettings()
		settings.TrustDomain = "mesh.example"
		as := func(id string) *client {
			s := mutual(t, a, shown(t, a, "client.example", id), func(o *discovery.Options) { o.Settings = settings })
			c := s.connectAs(delta, &corev3.Node{Id: nodeA}, nil)
			c.subscribe(cds)
			synctest.Wait()
			return c
		}
		as("spiffe://mesh.example/ns/default/sa/web").one()
		if c := as("spiffe://cluster.local/ns/default/sa/web"); c.ended() != codes.PermissionDenied {
			t.Errorf("ended with %v", c.err)
		}
	})
}

// converse subscribes to clusters with these certificates.
func converse(t *testing.T, a *selfsigned.Authority, shows []tls.Certificate, node *corev3.Node) *client {
	c := mutual(t, a, shows).connectAs(delta, node, nil)
	c.subscribe(cds)
	synctest.Wait()
	return c
}

// mutual starts a server that accepts clients of the authority and shows them these
// certificates. Call it in a bubble, because certificates last an hour by its
// clock.
func mutual(t *testing.T, a *selfsigned.Authority, shows []tls.Certificate, options ...func(*discovery.Options)) *server {
	authorities := x509.NewCertPool()
	authorities.AddCert(a.Certificate)
	s := serveAs(t, ads.Options{TLS: &tls.Config{
		Certificates: shown(t, a, "replica.example"), ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities,
	}}, newSource(service("web.example", 80, 1, "v1")), options...)
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
