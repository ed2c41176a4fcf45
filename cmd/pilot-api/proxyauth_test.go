package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/internal/wholefile"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/identity"
)

const (
	webNode  = "sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local"
	bankNode = "sidecar~10.0.0.8~vault-1.bank~bank.svc.cluster.local"
	edgeNode = "router~10.0.0.9~edge-1.shop~shop.svc.cluster.local"
)

// account creates a ServiceAccount in shop.
func (s *secured) account(t *testing.T, name string) {
	t.Helper()
	a := s.send(t, s.client(t, "bob"), http.MethodPost, s.api, "/api/v1/namespaces/shop/serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"`+name+`"}}`, "")
	if a.StatusCode != http.StatusCreated {
		t.Fatal(a.text)
	}
}

// token returns a token of a ServiceAccount in shop.
func (s *secured) token(t *testing.T, account, audience string) string {
	t.Helper()
	a := s.send(t, s.client(t, "bob"), http.MethodPost, s.api, "/api/v1/namespaces/shop/serviceaccounts/"+account+"/token", `{"spec":{"audiences":["`+audience+`"]}}`, "")
	var answer struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(a.text), &answer); err != nil || a.StatusCode != http.StatusCreated {
		t.Fatal(a.text)
	}
	return answer.Status.Token
}

// tokenID returns the claim jti of a token.
func (s *secured) tokenID(t *testing.T, token string) string {
	t.Helper()
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil {
		t.Fatal(err)
	}
	return claims.ID
}

// proxies returns the connected proxies, by their node and transport.
func (s *secured) proxies(t *testing.T) (all []string) {
	t.Helper()
	var list []struct{ Node, Transport, State string }
	a := s.send(t, s.client(t, "bob"), http.MethodGet, s.api, "/apis/registry.istio.io/v1/proxies", "", "")
	if err := json.Unmarshal([]byte(a.text), &list); err != nil {
		t.Fatalf("%v: %s", err, a.text)
	}
	for _, p := range list {
		if p.State != "DISCONNECTED" {
			all = append(all, p.Node+" "+p.Transport)
		}
	}
	return all
}

// await waits until a proxy is connected, or is not.
func (s *secured) await(t *testing.T, proxy string, connected bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		all := s.proxies(t)
		if slices.Contains(all, proxy) == connected {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s connected: want %v, the proxies are %q", proxy, connected, all)
		}
	}
}

// TestEnvoysProveThemselvesByTokens runs real Envoys that have their token in a file, over
// streams and by polling. When the token ends before its time, the stream ends, and a new
// token in the file brings the Envoy back without a restart.
func TestEnvoysProveThemselvesByTokens(t *testing.T) {
	outside.Slow(t)
	streams := freeAddress(t)
	s := startSecured(t, "--proxy-auth", "token", "--grpc-listen", streams)
	s.account(t, "web")
	write := func(file, token string) {
		text, err := envoy.TokenSecret(token)
		if err == nil {
			err = wholefile.WriteText(file, 0o600, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var given []string
	give := func(file string) {
		given = append(given, s.token(t, "web", authn.AudienceXDS))
		write(file, given[len(given)-1])
	}
	run := func(node string, api envoy.API, xds, file string) {
		o := envoy.DefaultBootstrap()
		o.NodeID, o.Server, o.API, o.XDS, o.CAFile, o.XDSTokenFile, o.AdminPort = node, "https://"+s.api, api, []string{xds}, s.at("authority.crt"), file, 0
		text, err := envoy.Bootstrap(o)
		if err != nil {
			t.Fatal(err)
		}
		config := filepath.Join(t.TempDir(), "envoy.yaml")
		if err := os.WriteFile(config, text, 0o600); err != nil {
			t.Fatal(err)
		}
		envoytest.Run(t, exec.CommandContext(t.Context(), outside.Tool(t, "envoy"), "-c", config, "--concurrency", "1", "--disable-hot-restart", "--use-dynamic-base-id", "-l", "critical"), "/server_info")
	}
	file := filepath.Join(t.TempDir(), "token.yaml")
	give(file)
	run(webNode, envoy.Delta, streams, file)
	s.await(t, webNode+" delta", true)
	polling := strings.Replace(webNode, "web-1", "web-2", 1)
	run(polling, envoy.REST, s.polls, file)
	s.await(t, polling+" rest", true)

	// A token that is revoked ends what runs, and no other token of the account.
	other := s.token(t, "web", authn.AudienceXDS)
	revoked := s.tokenID(t, given[len(given)-1])
	if a := s.send(t, s.client(t, "bob"), http.MethodDelete, s.api, "/api/v1/namespaces/shop/serviceaccounts/web/token/"+revoked, "", ""); a.StatusCode != http.StatusOK {
		t.Fatal(a.text)
	}
	s.await(t, webNode+" delta", false)
	write(file, other)
	s.await(t, webNode+" delta", true)

	// Another account of the same name: the token of the first one counts no longer.
	if a := s.send(t, s.client(t, "bob"), http.MethodDelete, s.api, "/api/v1/namespaces/shop/serviceaccounts/web", "", ""); a.StatusCode != http.StatusOK {
		t.Fatal(a.text)
	}
	s.await(t, webNode+" delta", false)
	s.account(t, "web")
	give(file)
	s.await(t, webNode+" delta", true)
}

// hello opens a stream as a node says, and returns the code of its end, or OK if it is answered.
func (s *secured) hello(t *testing.T, address, token string, certificate *tls.Certificate, node *corev3.Node) (codes.Code, string) {
	t.Helper()
	settings := &tls.Config{RootCAs: x509.NewCertPool()}
	settings.RootCAs.AddCert(s.authority.Certificate)
	if certificate != nil {
		settings.Certificates = []tls.Certificate{*certificate}
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(settings)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err == nil {
		_ = stream.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: discovery.ClusterType}) // Recv has the error.
		_, err = stream.Recv()
	}
	return status.Code(err), fmt.Sprint(err)
}

// hold keeps a stream of webNode open until held is closed.
func (s *secured) hold(t *testing.T, address string, held <-chan struct{}, shows ...tls.Certificate) {
	settings := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: shows}
	settings.RootCAs.AddCert(s.authority.Certificate)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(settings)))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(context.Background())
	if err == nil {
		err = stream.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(webNode, nil), TypeUrl: discovery.ClusterType})
	}
	if err != nil {
		t.Error(err)
		return
	}
	go func() { // As a client does that waits for answers.
		for {
			if _, err := stream.Recv(); err != nil {
				return
			}
		}
	}()
	<-held
}

func nodeOf(id string, labels map[string]any) *corev3.Node {
	node := &corev3.Node{Id: id}
	if labels != nil {
		node.Metadata, _ = structpb.NewStruct(map[string]any{"LABELS": labels})
	}
	return node
}

// TestProxiesClaimOnlyWhatTheyMay checks that a proxy with a good token gets the configuration
// of its own namespace and role alone, over streams and polls.
func TestProxiesClaimOnlyWhatTheyMay(t *testing.T) {
	outside.Slow(t)
	streams := freeAddress(t)
	s := startSecured(t, "--proxy-auth", "token", "--grpc-listen", streams)
	s.account(t, "web")
	s.account(t, "edge")
	web, edge := s.token(t, "web", authn.AudienceXDS), s.token(t, "edge", authn.AudienceXDS)
	binding := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"edges"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"proxy"},"subjects":[{"kind":"ServiceAccount","namespace":"shop","name":"edge"}]}`
	if a := s.send(t, s.client(t, "bob"), http.MethodPost, s.api, "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings", binding, ""); a.StatusCode != http.StatusCreated {
		t.Fatal(a.text)
	}
	labels := map[string]any{"istio": "edge"}
	for name, tc := range map[string]struct {
		token string
		node  *corev3.Node
		want  codes.Code
	}{
		"own":                  {web, nodeOf(webNode, nil), codes.OK},
		"no token":             {"", nodeOf(webNode, nil), codes.Unauthenticated},
		"wrong token":          {web + "x", nodeOf(webNode, nil), codes.Unauthenticated},
		"token for the API":    {s.token(t, "web", authn.AudienceAPI), nodeOf(webNode, nil), codes.Unauthenticated},
		"token of a user":      {adasToken, nodeOf(webNode, nil), codes.Unauthenticated},
		"other namespace":      {web, nodeOf(bankNode, nil), codes.PermissionDenied},
		"other role":           {web, nodeOf(edgeNode, nil), codes.PermissionDenied},
		"labels":               {web, nodeOf(webNode, labels), codes.PermissionDenied},
		"a gateway":            {edge, nodeOf(edgeNode, labels), codes.OK},
		"a gateway of another": {edge, nodeOf(strings.ReplaceAll(edgeNode, "shop", "bank"), labels), codes.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			if code, err := s.hello(t, streams, tc.token, nil, tc.node); code != tc.want {
				t.Errorf("%v: %s, want %v", code, err, tc.want)
			}
		})
	}
	poll := func(token, node string) int {
		return s.send(t, s.client(t, ""), http.MethodPost, s.polls, "/v3/discovery:clusters", `{"node":{"id":"`+node+`"}}`, token).StatusCode
	}
	for _, tc := range []struct {
		token, node string
		want        int
	}{{web, webNode, 200}, {"", webNode, 401}, {adasToken, webNode, 401}, {web, bankNode, 403}, {web, edgeNode, 403}} {
		if got := poll(tc.token, tc.node); got != tc.want {
			t.Errorf("a poll as %s: %d, want %d", tc.node, got, tc.want)
		}
		if got := s.get(t, s.polls, "/v1/clusters/c/"+tc.node, tc.token, "").StatusCode; got != tc.want {
			t.Errorf("a v1 poll as %s: %d, want %d", tc.node, got, tc.want)
		}
	}
	if got := s.get(t, s.polls, "/v1/registration", "", "").StatusCode; got != 401 {
		t.Errorf("all endpoints without a proof: %d", got)
	}
}

// TestOneAccountHasFewProxies: a token is for a number of proxies, over polls and streams
// together.
func TestOneAccountHasFewProxies(t *testing.T) {
	outside.Slow(t)
	streams := freeAddress(t)
	s := startSecured(t, "--proxy-auth", "token", "--grpc-listen", streams, "--proxy-max-nodes", "3")
	s.account(t, "web")
	web := s.token(t, "web", authn.AudienceXDS)
	nth := func(i int) string { return strings.Replace(webNode, "~web", fmt.Sprintf("~web-%d", i), 1) }
	if nth(1) == nth(2) {
		t.Fatal(webNode)
	}
	for i := range 5 {
		want := http.StatusOK
		if i >= 3 {
			want = http.StatusForbidden
		}
		a := s.send(t, s.client(t, ""), http.MethodPost, s.polls, "/v3/discovery:clusters", `{"node":{"id":"`+nth(i)+`"}}`, web)
		if a.StatusCode != want {
			t.Errorf("proxy %d: %d %s, want %d", i, a.StatusCode, a.text, want)
		}
	}
	if code, err := s.hello(t, streams, web, nil, nodeOf(nth(9), nil)); code != codes.PermissionDenied {
		t.Errorf("a stream of another proxy: %s %v", code, err)
	}
	if code, err := s.hello(t, streams, web, nil, nodeOf(nth(0), nil)); code != codes.OK {
		t.Errorf("a stream of one of the three: %s %v", code, err)
	}
}

// TestProxiesProveThemselvesByCertificates is the same for certificates with a SPIFFE ID.
func TestProxiesProveThemselvesByCertificates(t *testing.T) {
	outside.Slow(t)
	streams, dir := freeAddress(t), t.TempDir()
	proxies := selfsigned.NewAuthority(t, dir)
	proxies.Issue(t, "web", "spiffe://cluster.local/ns/shop/sa/web")
	proxies.Issue(t, "plain")
	s := startSecured(t, "--proxy-auth", "mtls", "--grpc-listen", streams, "--grpc-client-ca", filepath.Join(dir, "authority.crt"))
	pair := func(name string) *tls.Certificate {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		return &pair
	}
	s.authority.IssueUser(t, time.Hour, "user", identity.Masters)
	user, err := tls.LoadX509KeyPair(s.at("user.crt"), s.at("user.key"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		certificate *tls.Certificate
		node        string
		want        codes.Code
	}{
		"own":                   {pair("web"), webNode, codes.OK},
		"other namespace":       {pair("web"), bankNode, codes.PermissionDenied},
		"other role":            {pair("web"), edgeNode, codes.PermissionDenied},
		"without a SPIFFE ID":   {pair("plain"), webNode, codes.Unauthenticated},
		"no certificate":        {nil, webNode, codes.Unavailable},
		"certificate of a user": {&user, webNode, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if code, err := s.hello(t, streams, "", tc.certificate, nodeOf(tc.node, nil)); code != tc.want {
				t.Errorf("%v: %s, want %v", code, err, tc.want)
			}
		})
	}
	poll := func(certificate *tls.Certificate, node string) int {
		settings := &tls.Config{RootCAs: x509.NewCertPool()}
		settings.RootCAs.AddCert(s.authority.Certificate)
		if certificate != nil {
			settings.Certificates = []tls.Certificate{*certificate}
		}
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: settings}}
		defer c.CloseIdleConnections()
		return s.send(t, c, http.MethodPost, s.polls, "/v3/discovery:clusters", `{"node":{"id":"`+node+`"}}`, "").StatusCode
	}
	for _, tc := range []struct {
		certificate *tls.Certificate
		node        string
		want        int
	}{{pair("web"), webNode, 200}, {pair("web"), bankNode, 403}, {pair("plain"), webNode, 401}, {nil, webNode, 0}, {&user, webNode, 0}} {
		if got := poll(tc.certificate, tc.node); got != tc.want {
			t.Errorf("a poll as %s: %d, want %d", tc.node, got, tc.want)
		}
	}

	// The authority goes: its certificates prove nothing, also on connections that are open.
	held := make(chan struct{})
	defer close(held)
	go s.hold(t, streams, held, *pair("web"))
	s.await(t, webNode+" ads", true)
	settings := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{*pair("web")}}
	settings.RootCAs.AddCert(s.authority.Certificate)
	open := &http.Client{Transport: &http.Transport{TLSClientConfig: settings}}
	defer open.CloseIdleConnections()
	again := func() int {
		return s.send(t, open, http.MethodPost, s.polls, "/v3/discovery:clusters", `{"node":{"id":"`+strings.Replace(webNode, "web-1", "web-2", 1)+`"}}`, "").StatusCode
	}
	if got := again(); got != http.StatusOK {
		t.Fatalf("a poll on a new connection: %d", got)
	}
	selfsigned.NewAuthority(t, dir)
	s.await(t, webNode+" ads", false)
	if got := again(); got != http.StatusUnauthorized {
		t.Errorf("a poll on the open connection: %d", got)
	}
	if got := again(); got != 0 {
		t.Errorf("a poll after the connection has ended: %d", got)
	}
}
