package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// MaxRequest is the maximum length of a request, in bytes.
const MaxRequest = 16 << 10

// Refusal is the reason why a request is not signed. Its text is for the sender.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// Keys that are signed. The upper bound of RSA bounds the cost of a request.
const (
	minRSABits = 2048
	maxRSABits = 4096
)

// parseRequest returns the key that a request in PEM proves to have. A request must ask for no
// other name than id.
func parseRequest(text string, id spiffeid.ID) (key any, err error) {
	if len(text) > MaxRequest {
		return nil, refuse("the request for a certificate has %d bytes, and may have %d", len(text), MaxRequest)
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST" {
		return nil, refuse("the request must be one block CERTIFICATE REQUEST in PEM")
	}
	if strings.TrimSpace(string(rest)) != "" {
		return nil, refuse("the request must be one block CERTIFICATE REQUEST in PEM, and something follows it")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, refuse("the request cannot be read (PKCS #10)")
	}
	if err := checkKey(request.PublicKey); err != nil {
		return nil, err
	}
	if err := request.CheckSignature(); err != nil {
		return nil, refuse("the request is not signed by the key that it is for")
	}
	return request.PublicKey, checkNames(request, id)
}

func checkKey(key any) error {
	const allowed = "RSA with 2048 to 4096 bits, and ECDSA on P-256 or P-384"
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return refuse("the key is RSA with %d bits; signed are %s", bits, allowed)
		}
		return nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
			return refuse("the key is ECDSA on %s; signed are %s", key.Curve.Params().Name, allowed)
		}
		return nil
	}
	return refuse("the key is of an unknown kind; signed are %s", allowed)
}

// checkNames refuses a request for something else than a certificate with the name id. A
// certificate with fewer names than the sender expects would fail later, where the reason is
// not known.
func checkNames(request *x509.CertificateRequest, id spiffeid.ID) error {
	const only = "a certificate has only the SPIFFE ID of its owner, here "
	switch {
	case len(request.DNSNames) > 0:
		return refuse("the request asks for the DNS name %.100q: %s%s", request.DNSNames[0], only, id)
	case len(request.IPAddresses) > 0:
		return refuse("the request asks for the address %s: %s%s", request.IPAddresses[0], only, id)
	case len(request.EmailAddresses) > 0:
		return refuse("the request asks for the mail address %.100q: %s%s", request.EmailAddresses[0], only, id)
	case len(request.URIs) > 1:
		return refuse("the request asks for %d URIs: %s%s", len(request.URIs), only, id)
	case len(request.URIs) == 1 && request.URIs[0].String() != id.String():
		return refuse("the request asks for %.200q, and its sender has proved to be %s", request.URIs[0].String(), id)
	}
	for _, e := range request.Extensions {
		if e.Id.Equal(basicConstraints) && asksToBeAuthority(e.Value) {
			return refuse("the request asks for the certificate of an authority: this one signs workloads only")
		}
	}
	return nil
}

var basicConstraints = asn1.ObjectIdentifier{2, 5, 29, 19}

func asksToBeAuthority(value []byte) bool {
	var constraints struct {
		IsCA       bool `asn1:"optional"`
		MaxPathLen int  `asn1:"optional,default:-1"`
	}
	_, err := asn1.Unmarshal(value, &constraints)
	return err != nil || constraints.IsCA
}
