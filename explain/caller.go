package explain

import (
	"net/netip"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// Caller is what is known about the sender of a request.
type Caller struct {
	// MutualTLS is set if it begins connections with the certificate of its workload, and OtherTLS
	// if with TLS of another kind. Without both it sends plain text, if TLS is not a part of the request.
	MutualTLS bool `json:"mutualTLS,omitempty"`
	OtherTLS  bool `json:"otherTLS,omitempty"`
	// Principal is the name in its certificate, spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT; "" if it is
	// not known. If it ends with /sa/, only the account is not known.
	Principal string `json:"principal,omitempty"`
	// Addresses are those from which it may call; none if they are not known.
	Addresses []netip.Addr `json:"addresses,omitempty"`
}

// anyAccount ends the name of a caller whose account is not known.
const anyAccount = "/sa/"

// The parts of a request that a condition may depend on.
const (
	onCertificate   = "the certificate of the caller"
	onAccount       = "the account of the caller"
	onAddress       = "the address of the caller"
	onClientAddress = "the address of the client"
	onServerName    = "the server name of TLS"
)

// peerName tests the name in the certificate of the caller.
func (r Request) peerName(t *ir.TextTest) (verdict, string) {
	switch {
	case r.Caller == nil:
		return mayHold, onCertificate
	case !r.identified:
		return doesNotHold, ""
	case r.Caller.Principal == "":
		return mayHold, onCertificate
	case strings.HasSuffix(r.Caller.Principal, anyAccount):
		return withAnyAccount(r.Caller.Principal, t, r.expressions), onAccount
	}
	return text(t, r.Caller.Principal, true, r.expressions), ""
}

// withAnyAccount compares a name whose account is not known.
func withAnyAccount(prefix string, t *ir.TextTest, known expressions) verdict {
	may := func(is bool) verdict {
		if is {
			return mayHold
		}
		return doesNotHold
	}
	switch {
	case t.Present:
		return holds
	case t.Exact != "":
		return may(strings.HasPrefix(t.Exact, prefix))
	case t.Prefix != "" && strings.HasPrefix(prefix, t.Prefix):
		return holds
	case t.Prefix != "":
		return may(strings.HasPrefix(t.Prefix, prefix))
	case strings.HasPrefix(t.Regex, ".*/ns/") && strings.HasSuffix(t.Regex, "/.*"):
		// It is about the namespace. No account has a slash.
		return text(t, prefix+"a", true, known)
	}
	return mayHold
}

// peerAddress tests the address of the other end of the connection.
func (r Request) peerAddress(block string) (verdict, string) {
	if r.Caller == nil || len(r.Caller.Addresses) == 0 {
		return mayHold, onAddress
	}
	prefix, err := netip.ParsePrefix(block)
	inside := 0
	for _, address := range r.Caller.Addresses {
		if err == nil && prefix.Contains(address.Unmap()) {
			inside++
		}
	}
	switch inside {
	case 0:
		return doesNotHold, ""
	case len(r.Caller.Addresses):
		return holds, ""
	}
	return mayHold, onAddress
}

// beginsTLS reports whether the connection of the request begins with TLS.
func (r Request) beginsTLS() bool {
	return r.Scheme == "https" || r.Caller != nil && (r.Caller.MutualTLS || r.Caller.OtherTLS)
}

// offers reports whether the caller offers an application protocol of the mesh.
func (r Request) offers() bool { return r.Caller != nil && r.Caller.MutualTLS }

// taken returns the request as a chain has it after TLS, or why the chain closes the connection.
func (r Request) taken(by *ir.FilterChain) (Request, string) {
	if by.TLS == nil || r.Caller == nil {
		return r, ""
	}
	client := by.TLS.Client
	switch {
	case client == nil:
	case !r.Caller.MutualTLS:
		return r, "the caller has no certificate of the mesh"
	case r.Caller.Principal != "" && !strings.HasPrefix(r.Caller.Principal, client.URIPrefix):
		return r, "the certificate of the caller is for another trust domain"
	default:
		r.identified = true
	}
	return r, ""
}
