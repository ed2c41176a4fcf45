package credential

import (
	"crypto/tls"
	"crypto/x509"
)

// Shown is what a server of ours shows.
func (p Pair) Shown() (tls.Certificate, error) {
	return tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key.Reveal()))
}

// Authorities are those by which it verifies others.
func (p Pair) Authorities() *x509.CertPool {
	pool := x509.NewCertPool()
	list, _ := Certificates(p.CACertificates) // They were checked.
	for _, c := range list {
		pool.AddCert(c)
	}
	return pool
}
