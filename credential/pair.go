package credential

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Pair is what a proxy uses for TLS: a certificate with its chain and key, which it
// presents, and the authorities by which it verifies others. Either may be missing.
type Pair struct {
	Certificate    string
	Key            Key
	CACertificates string
}

// Equal reports whether two pairs have the same text.
func (p Pair) Equal(other Pair) bool {
	return p.Certificate == other.Certificate && p.Key.Equal(other.Key) && p.CACertificates == other.CACertificates
}

// The fields of a Pair, as flaws name them.
const (
	CertificateField = "certificate"
	KeyField         = "privateKey"
	CAField          = "caCertificates"
)

// Flaw is something wrong with a Pair. No message contains any text of the Pair.
type Flaw struct {
	Field, Message string
	// Missing means that a required field is not set.
	Missing bool
	// Advice means that the pair can be used as it is.
	Advice bool
}

// Check returns everything that is wrong with the pair at the given time, except
// certificates that expire or have expired (Ends). A Mark in place of the key is assumed
// to be the key of the certificate.
func (p Pair) Check(now time.Time) []Flaw {
	var flaws []Flaw
	if p.Certificate == "" && p.Key.None() && p.CACertificates == "" {
		return []Flaw{{Field: CertificateField, Missing: true, Message: "must be given with its privateKey, or else caCertificates"}}
	}
	flaws = append(flaws, p.checkShown(now)...)
	if p.CACertificates != "" {
		flaws = append(flaws, checkAuthorities(p.CACertificates, now)...)
	}
	return flaws
}

func (p Pair) checkShown(now time.Time) []Flaw {
	switch {
	case p.Certificate == "" && p.Key.None():
		return nil
	case p.Certificate == "":
		return []Flaw{{Field: CertificateField, Missing: true, Message: "must be given for the privateKey"}}
	}
	chain, err := Certificates(p.Certificate)
	if err != nil {
		return []Flaw{{Field: CertificateField, Message: err.Error()}}
	}
	var flaws []Flaw
	if err := served(chain[0]); err != nil {
		flaws = append(flaws, Flaw{Field: CertificateField, Message: err.Error()})
	}
	if p.Key.None() {
		return append(flaws, Flaw{Field: KeyField, Missing: true, Message: "must be given for the certificate"})
	}
	if err := belongs(p.Certificate, p.Key.Reveal()); err != nil {
		flaws = append(flaws, Flaw{Field: KeyField, Message: err.Error()})
	}
	flaws = append(flaws, checkChain(chain)...)
	for i, c := range chain {
		flaws = append(flaws, checkTime(CertificateField, i, c, now)...)
	}
	return flaws
}

// checkChain checks that each certificate signed the one before it.
func checkChain(chain []*x509.Certificate) []Flaw {
	for i := range len(chain) - 1 {
		if chain[i].CheckSignatureFrom(chain[i+1]) != nil {
			return []Flaw{{Field: CertificateField, Advice: true, Message: fmt.Sprintf(
				"has certificate %d, which did not sign the one before it: clients may find no way to an authority; the one that is shown stands first, then who signed it, and so on", i+2)}}
		}
	}
	return nil
}

func checkAuthorities(text string, now time.Time) []Flaw {
	list, err := Certificates(text)
	if err != nil {
		return []Flaw{{Field: CAField, Message: err.Error()}}
	}
	var flaws []Flaw
	for i, c := range list {
		if c.Version == 3 && !c.IsCA {
			flaws = append(flaws, Flaw{Field: CAField, Advice: true, Message: fmt.Sprintf("has certificate %d, which is that of no authority: it vouches for nobody", i+1)})
		}
		flaws = append(flaws, checkTime(CAField, i, c, now)...)
	}
	return flaws
}

// checkTime checks that a certificate is valid already. Ends says when it expires.
func checkTime(field string, i int, c *x509.Certificate, now time.Time) []Flaw {
	if !now.Before(c.NotBefore) {
		return nil
	}
	return []Flaw{{Field: field, Advice: true, Message: fmt.Sprintf("has certificate %d, which is not valid before %s", i+1, c.NotBefore.UTC().Format("2006-01-02 15:04 MST"))}}
}

const beginning = "-----BEGIN "

// Certificates parses one or more certificates in PEM, and rejects any other PEM
// block. It ignores text around them. Errors contain none of the text.
func Certificates(text string) ([]*x509.Certificate, error) {
	if HoldsKey(text) {
		return nil, errors.New("must not hold a private key: that belongs into privateKey")
	}
	rest, wanted := []byte(text), strings.Count(text, beginning)
	if wanted == 0 {
		return nil, errors.New("must be in PEM: -----BEGIN CERTIFICATE-----, lines in base64, -----END CERTIFICATE-----")
	}
	var list []*x509.Certificate
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("must hold certificates only; block %d is something else", len(list)+1)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has no X.509 certificate in block %d", len(list)+1)
		}
		list = append(list, c)
	}
	if len(list) != wanted {
		return nil, fmt.Errorf("is cut off or damaged: %d blocks begin, and %d can be read", wanted, len(list))
	}
	return list, nil
}

// belongs returns an error if the key cannot be read or is not the key of the first
// certificate.
func belongs(certificates, key string) error {
	if IsMark(key) {
		return nil
	}
	block, err := keyBlock(key)
	if err != nil {
		return err
	}
	// The library distinguishes an unreadable key from one that does not match only
	// by the words of its errors, which may change.
	if _, err := tls.X509KeyPair([]byte(certificates), pem.EncodeToMemory(block)); err != nil {
		return errors.New("is not a key that belongs to the certificate, which must be the first one where there are several")
	}
	return nil
}

func keyBlock(text string) (*pem.Block, error) {
	var found *pem.Block
	read := 0
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		read++
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return nil, errors.New("must not be encrypted: nobody is there to type a passphrase")
		case block.Type == "EC PARAMETERS":
		case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return nil, errors.New("must hold a private key and nothing else; certificates belong into certificate")
		case found != nil:
			return nil, errors.New("must be one private key, and there are several")
		default:
			found = block
		}
	}
	if found == nil || read != strings.Count(text, beginning) {
		return nil, errors.New("must be a whole private key in PEM, or the mark (kept: …) of the one that is stored")
	}
	return found, nil
}

// served returns an error if an Envoy does not accept a certificate with this key.
func served(c *x509.Certificate) error {
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < 2048 {
			return fmt.Errorf("has an RSA key of %d bits; proxies take 2048 or more", key.N.BitLen())
		}
		return nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P224() {
			return nil
		}
	}
	return errors.New("must have an RSA key or one on the curve P-256, P-384 or P-521: proxies take no others")
}
