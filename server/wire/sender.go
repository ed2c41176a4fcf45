package wire

import (
	"net"
	"net/http"

	"github.com/pilot-api/pilot-api/security/identity"
)

// Sender returns the name under which limits count a request. It is the proven user, even
// if it acts as somebody else, or the address of a sender without a proof.
func Sender(r *http.Request) string {
	who := identity.Of(r.Context())
	if who.Via != nil {
		who = *who.Via
	}
	if who.IsProved() {
		return "user " + who.Name
	}
	return Address(r)
}

// Address returns the address that a request comes from, without its port.
func Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
