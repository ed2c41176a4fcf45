package ca

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/pilot-api/pilot-api/credential"
)

// FromPair returns the trust in the authority of an operator: a certificate with its chain and
// key, and the roots. The chain must lead to one of the roots.
func FromPair(pair credential.Pair) (*Trust, error) {
	roots, err := credential.Certificates(pair.CACertificates)
	if err != nil {
		return nil, fmt.Errorf("the roots: %w", err)
	}
	if pair.Certificate == "" {
		return nil, errors.New("there is no certificate")
	}
	shown, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key.Reveal()))
	if err != nil {
		return nil, errors.New("the key is not that of the certificate")
	}
	key, ok := shown.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	chain, err := credential.Certificates(pair.Certificate)
	if err != nil {
		return nil, fmt.Errorf("the certificate: %w", err)
	}
	trust := &Trust{Roots: roots}
	root, err := rootOf(chain, trust.Pool())
	if err != nil {
		return nil, err
	}
	trust.Issuer = &Issuer{Chain: chain, Root: root, key: key}
	return trust, nil
}

// CheckSuccessor returns an error if workloads that trust what before says could not verify
// certificates that next signs. before is nil for none.
func CheckSuccessor(before, next *Trust) error {
	if before == nil || before.Trusts(next.Issuer.Root) {
		return nil
	}
	return fmt.Errorf("the certificate leads to the root %s, which no workload trusts yet: first add this root beside the others, and wait until all proxies have acknowledged it (istioctl ca status)", Name(next.Issuer.Root))
}

// rootOf returns the root that a chain of authorities leads to.
func rootOf(chain []*x509.Certificate, roots *x509.CertPool) (*x509.Certificate, error) {
	for i, one := range chain {
		if !one.IsCA || one.KeyUsage != 0 && one.KeyUsage&x509.KeyUsageCertSign == 0 {
			return nil, fmt.Errorf("certificate %d is not that of an authority: it must be allowed to sign certificates", i+1)
		}
	}
	between := x509.NewCertPool()
	for _, one := range chain[1:] {
		between.AddCert(one)
	}
	found, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return nil, fmt.Errorf("the certificate does not lead to one of the roots: %w", err)
	}
	return found[0][len(found[0])-1], nil
}
