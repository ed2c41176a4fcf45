package ir

import "strings"

// HostPattern is a regular expression, in RE2 and ECMAScript alike, for a Host
// header without its port and final dot that names a host in one way alone: labels
// joined by dots, an IPv4 address in four decimal numbers, or an IPv6 address in
// hexadecimal and brackets. Other texts mean nothing, or a host that has another name: user@host,
// an empty label, an IPv4 address as one number or in hexadecimal. As for browsers,
// a name whose last label is a number is an IPv4 address.
//
// It stays below 100 instructions of RE2, which some Envoys take at most.
const HostPattern = `(` + hostName + `|` + fourNumbers + `|\[[0-9A-Fa-f:]+\])`

const (
	// hostName ends in a label that is no number, decimal or hexadecimal.
	hostName    = `([\w-]+\.)*([A-Za-z_-]|[1-9][0-9]*[A-Za-z_-]|0[0-9]*[A-WYZa-wyz_-])[\w-]*`
	decimal     = `(0|[1-9][0-9]?[0-9]?)`
	fourNumbers = `(` + decimal + `\.){3}` + decimal
)

// AnyPort is what may follow a HostPattern in a Host header.
const AnyPort = `(:[0-9]*)?`

// WithoutFinalDot is a Host header without the final dot of its host, before a
// port too. Of several dots it takes the last.
func WithoutFinalDot(authority string) string {
	at := strings.LastIndexByte(authority, '.')
	if at >= 0 && (at == len(authority)-1 || authority[at+1] == ':') {
		return authority[:at] + authority[at+1:]
	}
	return authority
}
