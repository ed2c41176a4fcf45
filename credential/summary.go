package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Summary is what may be told of a certificate.
type Summary struct {
	Subject string `json:"subject"`
	// Names are those that it is for: DNS names, addresses, URIs.
	Names     []string  `json:"subjectAltNames,omitempty"`
	Issuer    string    `json:"issuer"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	// Fingerprint is SHA-256 of the certificate in hex.
	Fingerprint string `json:"sha256"`
}

// Summaries are those of the certificates of a text, as far as they can be read.
func Summaries(text string) []Summary {
	list, _ := Certificates(text)
	out := make([]Summary, len(list))
	for i, c := range list {
		names := c.DNSNames
		for _, ip := range c.IPAddresses {
			names = append(names, ip.String())
		}
		for _, uri := range c.URIs {
			names = append(names, uri.String())
		}
		sum := sha256.Sum256(c.Raw)
		out[i] = Summary{
			Subject: c.Subject.String(), Names: names, Issuer: c.Issuer.String(),
			NotBefore: c.NotBefore.UTC(), NotAfter: c.NotAfter.UTC(), Fingerprint: hex.EncodeToString(sum[:]),
		}
	}
	return out
}
