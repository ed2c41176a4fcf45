package selfsigned

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"path/filepath"
	"testing"
	"time"
)

// Authority issues certificates.
type Authority struct {
	Certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	dir         string
	issued      int64
}

// NewAuthority makes an authority with authority.crt in dir. The files of its
// certificates are also in dir.
func NewAuthority(t testing.TB, dir string) *Authority {
	t.Helper()
	a := &Authority{dir: dir, key: newKey(t)}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	a.Certificate = template // It signs itself.
	der := a.sign(t, template, a.key)
	var err error
	if a.Certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "authority.crt"), &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// Issue writes HOST.crt and HOST.key, for URIs and a host, which is a name or an address.
func (a *Authority) Issue(t testing.TB, host string, uris ...string) {
	t.Helper()
	a.IssueFor(t, life, host, uris...)
}

// IssueFor is Issue for a certificate that ends after life.
func (a *Authority) IssueFor(t testing.TB, life time.Duration, host string, uris ...string) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		NotAfter:    time.Now().Add(life),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	for _, uri := range uris {
		u, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	der := a.sign(t, template, key)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(a.dir, host+".crt"), &pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, filepath.Join(a.dir, host+".key"), &pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// IssueAuthority writes NAME.crt and NAME.key, for an authority under this one.
func (a *Authority) IssueAuthority(t testing.TB, name string) {
	t.Helper()
	key := newKey(t)
	der := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(life),
	}, key)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(a.dir, name+".key"), &pem.Block{Type: "PRIVATE KEY", Bytes: private})
	write(t, filepath.Join(a.dir, name+".crt"), &pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// IssueUser writes NAME.crt and NAME.key, for a client with a name and groups. The
// certificate ends after life.
func (a *Authority) IssueUser(t testing.TB, life time.Duration, name string, groups ...string) {
	t.Helper()
	key := newKey(t)
	der := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: groups}, NotAfter: time.Now().Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, key)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(a.dir, name+".crt"), &pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, filepath.Join(a.dir, name+".key"), &pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// Revoke writes authority.crl, which revokes exactly the certificates of the hosts.
func (a *Authority) Revoke(t testing.TB, hosts ...string) {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
	for _, host := range hosts {
		pair, err := tls.LoadX509KeyPair(filepath.Join(a.dir, host+".crt"), filepath.Join(a.dir, host+".key"))
		if err != nil {
			t.Fatal(err)
		}
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{
			SerialNumber: pair.Leaf.SerialNumber, RevocationTime: list.ThisUpdate,
		})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.Certificate, a.key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(a.dir, "authority.crl"), &pem.Block{Type: "X509 CRL", Bytes: der})
}

func (a *Authority) sign(t testing.TB, template *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	a.issued++
	template.SerialNumber = big.NewInt(a.issued)
	switch {
	case template.Subject.CommonName != "":
	case len(template.DNSNames) > 0:
		template.Subject.CommonName = template.DNSNames[0]
	default:
		template.Subject.CommonName = "authority"
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(life)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
