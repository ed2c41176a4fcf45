package main

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestStreamsShowTheNewestCertificate: files that are replaced are what later clients
// see, and by what they are verified.
func TestStreamsShowTheNewestCertificate(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	o := options{grpcListen: "127.0.0.1:0", grpcTLS: mesh.SecretFile{CertificateFile: at("replica.example.crt"), KeyFile: at("replica.example.key"), CAFile: at("authority.crt")}}
	first := selfsigned.NewAuthority(t, dir)
	first.Issue(t, "replica.example")
	files := rotation.New(o.certificateFiles(mesh.DefaultSettings()), slog.New(slog.DiscardHandler))
	end, err := newTLSEnd(files, streamFiles, "", tls.RequireAndVerifyClientCert, "h2")
	if err != nil {
		t.Fatal(err)
	}
	config := end.config()
	if handshake(t, config, first, first) != nil {
		t.Error("a client of the first authority is not let in")
	}
	second := selfsigned.NewAuthority(t, dir)
	second.Issue(t, "replica.example")
	files.Look()
	if err := handshake(t, config, second, second); err != nil {
		t.Errorf("a client of the second authority is not let in: %v", err)
	}
	if handshake(t, config, second, selfsigned.NewAuthority(t, t.TempDir())) == nil {
		t.Error("a client of another authority is let in")
	}
}

// handshake is what the server says of a client that trusts one authority and shows a
// certificate of another.
func handshake(t *testing.T, config *tls.Config, trusts, shows *selfsigned.Authority) error {
	t.Helper()
	certificate, key := shows.PEM(t, "client.example")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AddCert(trusts.Certificate)
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		client := tls.Client(theirs, &tls.Config{ServerName: "replica.example", RootCAs: authorities, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
		defer theirs.Close()
		if client.Handshake() == nil {
			_, _ = client.Read(make([]byte, 1)) // The server's last word.
		}
	}()
	return tls.Server(ours, config).Handshake()
}
