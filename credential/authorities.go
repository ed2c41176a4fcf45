package credential

import (
	"crypto/x509"
	"fmt"
	"os"
)

// Authorities returns the certificates in a PEM file as a pool for tls.Config.RootCAs. An
// empty name means the authorities of the system, for which the pool is nil. A file
// without a certificate is an error.
func Authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no certificate in it", file)
	}
	return pool, nil
}
