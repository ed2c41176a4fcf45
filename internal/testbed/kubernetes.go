package testbed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/pilot-api/pilot-api/credential"
)

// Kubernetes is a kube-apiserver without anything around it but a kube-aggregation, which
// fills in aggregated ClusterRoles.
type Kubernetes struct {
	Server      *Process
	Aggregation *Process
	URL         string
	Client      *http.Client // Trusts the certificate of the server.
}

// KubernetesOptions say what a Kubernetes runs on.
type KubernetesOptions struct {
	Server, Aggregation string // The paths of the programs.
	Etcd                string // The URL of an empty etcd.
	// Certificate and Key are the files of the server's certificate, for 127.0.0.1. The key
	// also signs tokens of ServiceAccounts.
	Certificate, Key string
	Authority        string // The file of the authority of the certificate.
	Tokens           string // A file of tokens, lines of token,user,uid,"group1,group2".
	Token            string // One of them, of a member of system:masters.
}

// StartKubernetes starts a kube-apiserver on loopback and waits until it is ready. Its roles
// decide, without admission of ServiceAccounts. The logs are in dir. The caller ends what is
// returned, also beside an error.
func StartKubernetes(ctx context.Context, dir string, o KubernetesOptions) (*Kubernetes, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	k := &Kubernetes{URL: "https://" + address}
	authorities, err := credential.Authorities(o.Authority)
	if err != nil {
		return nil, err
	}
	k.Client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}, MaxIdleConnsPerHost: 16}}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	k.Server = NewProcess(dir, "kube-apiserver", o.Server,
		"--etcd-servers="+o.Etcd, "--bind-address="+host, "--secure-port="+port, "--advertise-address=127.0.0.2",
		"--tls-cert-file="+o.Certificate, "--tls-private-key-file="+o.Key,
		"--authorization-mode=RBAC", "--token-auth-file="+o.Tokens,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+o.Certificate, "--service-account-signing-key-file="+o.Key,
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		"--disable-admission-plugins=ServiceAccount",
		"--enable-priority-and-fairness=false", "--max-requests-inflight=0", "--max-mutating-requests-inflight=0")
	if err := k.Server.Start(); err != nil {
		return k, err
	}
	if err := k.Server.untilReady(ctx, k.Client, k.URL); err != nil {
		return k, err
	}
	return k, k.aggregate(dir, o)
}

// Close ends both programs.
func (k *Kubernetes) Close() error {
	return errors.Join(k.Aggregation.Stop(), k.Server.Stop())
}

func (k *Kubernetes) aggregate(dir string, o KubernetesOptions) error {
	file := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: x, user: {token: %q}}]
`, k.URL, o.Authority, o.Token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	k.Aggregation = NewProcess(dir, "kube-aggregation", o.Aggregation, file)
	return k.Aggregation.Start()
}
