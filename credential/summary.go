package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Summary is the information about a certificate that may be shown.
type Summary struct {
	Subject string `json:"subject"`
	// Names are its subject alternative names: DNS names, addresses, URIs.
	Names     []string  `json:"subjectAltNames,omitempty"`
	Issuer    string    `json:"issuer"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	// Fingerprint is the SHA-256 hash of the certificate in hex.
	Fingerprint string `json:"sha256"`
}

// Summaries returns summaries of the certificates in a text, or none if it cannot
// be read.
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
