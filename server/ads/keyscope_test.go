package ads_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/credentials"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/ads"
)

// TestKeysByNamespace checks that a router with a certificate for a namespace
// receives only the private keys of that namespace, although Gateways of every
// namespace select it.
func TestKeysByNamespace(t *testing.T) {
	all := []string{"default/cert", "shop/cert"}
	for _, tc := range []struct {
		name, namespace string
		uris            []string
		want            []string
	}{
		{"of the first namespace", "default", []string{"spiffe://cluster.local/ns/default/sa/edge"}, all[:1]},
		{"of the second namespace", "shop", []string{"spiffe://cluster.local/ns/shop/sa/edge"}, all[1:]},
		{"of a namespace without Secrets", "evil", []string{"spiffe://cluster.local/ns/evil/sa/edge"}, nil},
		{"of the root namespace", "istio-system", []string{"spiffe://cluster.local/ns/istio-system/sa/edge"}, all},
		{"without a SPIFFE ID", "evil", nil, all},
	} {
		for _, kind := range []variant{world, delta} {
			t.Run(fmt.Sprintf("%s, %s", tc.name, kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := selfsigned.NewAuthority(t, t.TempDir())
					s := edges(t, a, shown(t, a, "client.example", tc.uris...))
					node := fmt.Sprintf("router~10.9.0.3~edge.%[1]s~%[1]s.svc.cluster.local", tc.namespace)
					for _, c := range []*client{s.connectAs(kind, &corev3.Node{Id: node}, nil), s.connectSecrets(kind, &corev3.Node{Id: node})} {
						c.subscribe(sds, all...)
						var got []string
						for _, r := range c.told() {
							got = append(got, r.names()...)
						}
						if slices.Sort(got); !slices.Equal(got, tc.want) {
							t.Errorf("received the keys %v, want %v", got, tc.want)
						}
					}
				})
			})
		}
	}
}

// edges serves a Gateway with a certificate for each of two namespaces, both for
// every router.
func edges(t *testing.T, a *selfsigned.Authority, shows []tls.Certificate) *server {
	var objects []*schema.Object
	for i, namespace := range []string{"default", "shop"} {
		host := namespace + ".example"
		certificate, key := a.PEM(t, host)
		secret, err := json.Marshal(map[string]string{"certificate": certificate, "privateKey": key})
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects,
			objectIn(t, namespace, "Secret", "cert", string(secret)),
			objectIn(t, namespace, "Gateway", "edge", fmt.Sprintf(
				`{"servers":[{"port":{"number":%d,"name":"https","protocol":"HTTPS"},"hosts":[%q],"tls":{"mode":"SIMPLE","credentialName":"cert"}}]}`, 443+i, host)),
			objectIn(t, namespace, "VirtualService", "web", fmt.Sprintf(
				`{"hosts":[%q],"gateways":["edge"],"http":[{"directResponse":{"status":204}}]}`, host)))
	}
	authorities := x509.NewCertPool()
	authorities.AddCert(a.Certificate)
	s := serveAs(t, ads.Options{TLS: &tls.Config{
		Certificates: shown(t, a, "replica.example"), ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities,
	}}, newSource(objects...))
	s.speaks = credentials.NewTLS(&tls.Config{ServerName: "replica.example", RootCAs: authorities, Certificates: shows})
	return s
}

func objectIn(t *testing.T, namespace, kind, name, spec string) *schema.Object {
	k, _ := schema.KindByName(kind)
	o, err := schema.New(k, metav1.ObjectMeta{Name: name, Namespace: namespace}, []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	return o
}
