package main

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

// TestSecretsStayWhereTheListenersAre: what is withheld from all, and what from those
// who poll alone, by where we listen and whom we let in.
func TestSecretsStayWhereTheListenersAre(t *testing.T) {
	mutual := mesh.SecretFile{CertificateFile: "c", KeyFile: "k", CAFile: "a"}
	encrypted := mesh.SecretFile{CertificateFile: "c", KeyFile: "k"}
	for _, c := range []struct {
		listen, grpc string
		tls          mesh.SecretFile
		all, polls   string
	}{
		{listen: "127.0.0.1:8080", grpc: "127.0.0.1:15010"},
		{listen: "localhost:8080", grpc: "[::1]:15010"},
		{listen: "127.0.0.1:8080"},
		{listen: "127.0.0.1:8080", grpc: ":15010", all: "--grpc-listen"},
		{listen: "127.0.0.1:8080", grpc: ":15010", tls: encrypted, all: "--grpc-listen"},
		{listen: "127.0.0.1:8080", grpc: ":15010", tls: mutual},
		{listen: "0.0.0.0:8080", grpc: "127.0.0.1:15010", all: "--listen", polls: "--listen"},
		{listen: "10.0.0.1:8080", grpc: "10.0.0.1:15010", all: "--grpc-listen", polls: "--listen"},
		{listen: "10.0.0.1:8080", grpc: "10.0.0.1:15010", tls: mutual, polls: "--listen"},
		{listen: "10.0.0.1:8080", all: "--listen", polls: "--listen"},
	} {
		o := options{listen: c.listen, grpcListen: c.grpc, grpcTLS: c.tls, insecure: true, domain: "cluster.local"}
		settings, err := o.settings(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []struct{ got, want string }{{settings.SecretsWithheld, c.all}, {o.secretsNotPolled(), c.polls}} {
			if (w.got == "") != (w.want == "") || !strings.Contains(w.got, " "+w.want+" ") && w.want != "" {
				t.Errorf("%+v: withheld as %q, want %q", c, w.got, w.want)
			}
		}
	}
}
