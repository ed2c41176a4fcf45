package compile

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// This file finds fields that another version stored and this version does not know. If
// such a field is a condition of a match or a TLS setting, ignoring it would make a mesh
// more open than its author wrote it (decision 010).

// unknownFields returns the paths of the unknown fields of an object.
func unknownFields(own schema.Own) []string {
	var out []string
	for _, p := range slices.Concat(own.Violations, own.Warnings) {
		if p.Code == diag.UnknownField {
			out = append(out, p.Field)
		}
	}
	return out
}

// unknownWithin returns the first unknown field at or beneath a path, or "".
func (d declared) unknownWithin(path string) string {
	return d.unknownField(func(field string) bool {
		rest, beneath := strings.CutPrefix(field, path)
		return beneath && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// unknownTLS returns the first unknown field of TLS settings, or "".
func (d declared) unknownTLS() string {
	return d.unknownField(func(field string) bool { return strings.Contains(field, ".tls.") })
}

// unknownConnection returns the first unknown condition on connections, or "".
func (d declared) unknownConnection() string {
	return d.unknownField(func(field string) bool {
		return (strings.HasPrefix(field, "spec.tls[") || strings.HasPrefix(field, "spec.tcp[")) && strings.Contains(field, "].match[")
	})
}

func (d declared) unknownField(is func(string) bool) string {
	if at := slices.IndexFunc(d.unknown, is); at >= 0 {
		return d.unknown[at]
	}
	return ""
}

// knows reports whether this version knows all fields of a match. If it does not, it
// reports the consequence.
func (rp *reporter) knows(of declared, match string) bool {
	field := of.unknownWithin(match)
	if field != "" {
		rp.notHonoured(diag.Closed, of.ref, field, "requests that match the rest of the match are answered with 503: this version does not know the field")
	}
	return field == ""
}

// connectionsWithheld reports whether the connections that a VirtualService would route
// fail.
func (rd *reader) connectionsWithheld(vs *virtualService) bool {
	return vs.unknownConnection() != "" || rd.withheld(vs.declared)
}
