package ir_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

func TestString(t *testing.T) {
	never := 0
	config := &ir.Config{
		Delay: time.Second,
		Clusters: []*ir.Cluster{{
			Name: "out.a", Type: ir.StaticHosts, EndpointKey: "a|http", Hosts: []ir.Endpoint{{Host: "10.0.0.1", Port: 80}},
			TLS:              &ir.ClientTLS{CertificateFile: "/certs/a.crt", KeyFile: "/certs/a.key"},
			OutlierDetection: &ir.OutlierDetection{ConsecutiveErrors: &never},
			Origins:          []diag.Ref{{Kind: "ServiceEntry", Namespace: "default", Name: "a"}},
		}},
	}
	const want = `Clusters:
- EndpointKey: a|http
  Hosts:
  - Host: 10.0.0.1
    Port: 80
  Name: out.a
  Origins:
  - ServiceEntry default/a
  OutlierDetection:
    ConsecutiveErrors: 0
  TLS:
    CertificateFile: /certs/a.crt
    KeyFile: /certs/a.key
  Type: static
Delay: 1s
`
	if d := cmp.Diff(want, config.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestCredentialsAreHidden: whatever prints a route, values that let somebody in
// are not in it.
func TestCredentialsAreHidden(t *testing.T) {
	for name, hidden := range map[string]bool{
		"authorization": true, "Proxy-Authorization": true, "cookie": true, "Set-Cookie": true, "x-api-key": true, "apikey": true, "x-auth": true,
		"x-access-token": true, "x-session-id": true, "sig": true, "x-key": true, "client_secret": true,
		":authority": false, "x-author": false, "x-monkey": false, "end-user": false, "x-signal": false,
	} {
		headers := ir.HeaderOperations{Append: []ir.Header{{Name: name, Value: "swordfish"}}, Set: []ir.Header{{Name: name, Value: "swordfish"}}}
		route := &ir.Route{
			RequestHeaders: headers, ResponseHeaders: headers,
			Match: ir.Match{
				Headers: []ir.HeaderMatch{{Name: name, Exact: "swordfish"}, {Name: name, Prefix: "swordfish"}, {Name: name, Regex: "swordfish"}},
				Query:   []ir.QueryMatch{{Name: name, Exact: "swordfish"}, {Name: name, Regex: "swordfish"}},
			},
			Clusters: []ir.WeightedCluster{{Name: "a", RequestHeaders: headers, ResponseHeaders: headers}},
		}
		for _, text := range []string{
			(&ir.Config{RouteTables: []*ir.RouteTable{{VirtualHosts: []*ir.VirtualHost{{Routes: []*ir.Route{route}}}}}}).String(),
			route.String(), fmt.Sprintf("%+v %v", *route, route.Match),
		} {
			if strings.Contains(text, "swordfish") == hidden {
				t.Errorf("%s: hidden must be %v:\n%s", name, hidden, text)
			}
			if !strings.Contains(text, name) {
				t.Errorf("the name %s must be seen:\n%s", name, text)
			}
		}
	}
}

// TestEveryTextIsJudged: a field that holds text is hidden, or here as one that
// may be shown to anybody. Whoever adds a field decides.
func TestEveryTextIsJudged(t *testing.T) {
	listed := strings.Fields(public)
	config, texts := &ir.Config{}, map[string]bool{}
	fill(reflect.ValueOf(config).Elem(), "Config", texts)
	printed := config.String()
	for field := range texts {
		if shown, want := strings.Contains(printed, "<"+field+">"), slices.Contains(listed, field); shown != want {
			t.Errorf("%s: shown %v, want %v: give a secret a name that String hides, and list as public what is none", field, shown, want)
		}
	}
	for _, field := range listed {
		if !texts[field] {
			t.Errorf("%s: there is no such field", field)
		}
	}
}

// fill sets all that can be reached, each text to its field's name.
func fill(v reflect.Value, field string, texts map[string]bool) {
	if v.Type() == reflect.TypeFor[credential.Key]() {
		v.Set(reflect.ValueOf(credential.NewKey("<" + field + ">")))
		texts[field] = true
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), field, texts)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("<" + field + ">"))
			texts[field] = true
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), field, texts)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, field, texts)
		fill(value, field, texts)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[ir.Condition]() && texts["Test.Attribute"] {
			return // It has conditions of its own.
		}
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name, texts)
		}
	case reflect.String:
		v.SetString("<" + field + ">")
		texts[field] = true
	}
}

// public are the texts that String shows, but for the values of headers and
// parameters whose names hide them.
const public = `
	AccessPolicy.Name AccessStep.Action Test.Attribute Test.Block Test.Name Test.Path TextTest.Exact TextTest.Prefix TextTest.Regex TextTest.Suffix TextTest.Template
	ClaimHeader.Claim ClaimHeader.Header
	CORS.AllowHeaders CORS.AllowMethods CORS.ExposeHeaders
	ClientCertificate.CAFile ClientCertificate.CASecretName ClientCertificate.CRLFile ClientCertificate.CertificateHashes ClientCertificate.KeyHashes ClientCertificate.SubjectAltNames ClientCertificate.URIPrefix
	LocalSDS.File LocalSDS.Socket Secret.Revoked Secret.Roots
	ClientTLS.CAFile ClientTLS.CASecretName ClientTLS.CRLFile ClientTLS.CertificateFile ClientTLS.KeyFile ClientTLS.SecretName ClientTLS.SNI ClientTLS.SubjectAltNames ClientTLS.ALPN ClientTLS.URIPrefix
	Cluster.EndpointKey Cluster.LoadBalancer Cluster.Name Cluster.Type
	Cookie.Name Cookie.Path
	DirectResponse.Body
	Distribution.From Distribution.To
	Endpoint.Host Endpoint.Labels Endpoint.Zone
	FilterChain.ALPN FilterChain.ServerNames FilterChain.Transport
	GRPCHealthCheck.Service
	HTTPHealthCheck.Host HTTPHealthCheck.Path
	HTTPListener.AccessLog HTTPListener.Table
	HashKey.Header HashKey.Query
	Header.Name Header.Value
	HeaderMatch.Exact HeaderMatch.Name HeaderMatch.Prefix HeaderMatch.Regex
	HeaderOperations.Remove
	KeyPair.CertificateFile KeyPair.KeyFile KeyPair.SecretName
	LabelValue.Name LabelValue.Value
	Listener.Direction Listener.IP
	Localities.Labels
	Match.Path Match.Prefix Match.Regex
	Mirror.Cluster
	Order.Near Order.Next
	OriginMatch.Exact OriginMatch.Prefix OriginMatch.Regex
	QueryMatch.Exact QueryMatch.Name QueryMatch.Regex
	Redirect.Host Redirect.Path Redirect.Prefix Redirect.Scheme
	Ref.Kind Ref.Name Ref.Namespace
	RegexRewrite.Match RegexRewrite.Substitution
	Retry.On Retry.OtherHosts
	Rewrite.Host Rewrite.Path
	Route.Name Route.Operation Route.StatPrefix Route.WebSocket
	RouteTable.Name
	ServerTLS.ALPN ServerTLS.CertificateFile ServerTLS.Ciphers ServerTLS.KeyFile ServerTLS.MaxVersion ServerTLS.MinVersion ServerTLS.SecretName
	Secret.Name
	Share.To
	TCPListener.AccessLog
	TCPRoute.Destinations TCPRoute.ServerNames
	Takeover.From Takeover.To
	TokenHeader.Name TokenHeader.Prefix
	TokenRule.Audiences TokenRule.FromCookies TokenRule.FromParams TokenRule.Issuer TokenRule.PayloadHeader TokenRule.SpaceDelimited
	VirtualHost.Domains VirtualHost.Name
	WeightedCluster.Host WeightedCluster.Name
`
