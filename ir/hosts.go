package ir

import "strings"

// HostPattern is a regular expression, for both RE2 and ECMAScript, for a Host
// header without its port and final dot. It accepts only the usual form of a host:
// labels joined by dots, an IPv4 address of four decimal numbers, or an IPv6
// address in hexadecimal and brackets. Other texts mean nothing, or a host that has
// another name: user@host, an empty label, an IPv4 address as one number or in
// hexadecimal. As in browsers, a name whose last label is a number is an IPv4
// address.
//
// It compiles to fewer than 100 instructions of RE2, which is the maximum of some
// Envoys.
const HostPattern = `(` + hostName + `|` + fourNumbers + `|\[[0-9A-Fa-f:]+\])`

const (
	// hostName ends in a label that is not a number, decimal or hexadecimal.
	hostName    = `([\w-]+\.)*([A-Za-z_-]|[1-9][0-9]*[A-Za-z_-]|0[0-9]*[A-WYZa-wyz_-])[\w-]*`
	decimal     = `(0|[1-9][0-9]?[0-9]?)`
	fourNumbers = `(` + decimal + `\.){3}` + decimal
)

// AnyPort matches what may follow a HostPattern in a Host header.
const AnyPort = `(:[0-9]*)?`

// WithoutFinalDot returns a Host header without the final dot of its host, also
// before a port. Of several dots it removes the last.
func WithoutFinalDot(authority string) string {
	at := strings.LastIndexByte(authority, '.')
	if at >= 0 && (at == len(authority)-1 || authority[at+1] == ':') {
		return authority[:at] + authority[at+1:]
	}
	return authority
}
