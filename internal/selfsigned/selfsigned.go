// Package selfsigned makes certificates for tests. They are valid for an hour.
package selfsigned

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Write makes a self-signed certificate and writes it and its key to the two files. It
// makes folders as needed.
func Write(t testing.TB, certificateFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"mesh.example"},
		NotAfter: time.Now().Add(life),
		IsCA:     true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, certificateFile, &pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	write(t, keyFile, &pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

func write(t testing.TB, file string, block *pem.Block) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
}

// life is how long certificates are valid: too long for a warning that they expire.
const life = 90 * 24 * time.Hour
