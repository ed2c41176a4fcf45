package v3

import (
	"fmt"
	"slices"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// cipherNames are the ciphers of TLS 1.2 and earlier that every build of Envoy knows. Envoy
// refuses the whole list because of an unknown one. The ciphers of TLS 1.3 cannot be chosen.
var cipherNames = []string{
	"AES128-GCM-SHA256", "AES128-SHA", "AES256-GCM-SHA384", "AES256-SHA", "DES-CBC3-SHA",
	"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES256-SHA", "ECDHE-ECDSA-CHACHA20-POLY1305",
	"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-SHA", "ECDHE-RSA-CHACHA20-POLY1305",
}

// Ciphers returns the ciphers that can be chosen.
func Ciphers() []string { return slices.Clone(cipherNames) }

func cipherSuites(m *tlsv3.TlsParameters) error {
	for _, name := range m.GetCipherSuites() {
		if !slices.Contains(cipherNames, name) {
			return fmt.Errorf("cipher %q is not one of %s", name, strings.Join(cipherNames, ", "))
		}
	}
	return nil
}
