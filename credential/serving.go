package credential

import (
	"crypto/tls"
	"crypto/x509"
)

// Shown returns the certificate that a server of this program presents.
func (p Pair) Shown() (tls.Certificate, error) {
	return tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key.Reveal()))
}

// Authorities returns the authorities by which the server verifies others.
func (p Pair) Authorities() *x509.CertPool {
	pool := x509.NewCertPool()
	list, _ := Certificates(p.CACertificates) // Check has checked them.
	for _, c := range list {
		pool.AddCert(c)
	}
	return pool
}
