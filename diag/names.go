package diag

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// named matches objects in messages, in the form of Ref.String.
var named = regexp.MustCompile(`\b([A-Z][A-Za-z]+) ([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/([a-z0-9](?:[-.a-z0-9]*[a-z0-9])?)`)

// Names returns the other objects that the message names, in the form of Ref.String. Some
// may not exist.
func (p Problem) Names() []Ref {
	var refs []Ref
	for _, m := range named.FindAllStringSubmatch(p.Message, -1) {
		if ref := (Ref{Kind: m[1], Namespace: m[2], Name: m[3]}); ref != p.Object {
			refs = append(refs, ref)
		}
	}
	return refs
}

// General returns the problem with a message that names nothing: what its code is about, and
// a cause in the form "an object that ...". The rest of the message is dropped too, because it
// may show what is in the named object, such as its hosts.
func (p Problem) General(cause string) Problem {
	about := "not all of it is honoured"
	if m, ok := p.Code.Message(); ok {
		about = strings.TrimSuffix(m.About, ".")
	}
	first, size := utf8.DecodeRuneInString(about)
	if second, _ := utf8.DecodeRuneInString(about[size:]); !unicode.IsUpper(second) {
		about = string(unicode.ToLower(first)) + about[size:]
	}
	p.Message = about + ", because of " + cause
	return p
}
