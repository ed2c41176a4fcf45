// Package diag defines Problem, the one form of complaint in this project. A JSON
// Schema reports Problems in a file, a semantic check in an object, the compiler
// for what it cannot honour and a back-end for what it cannot encode. Users read
// all of them in the same form.
//
// The package imports nothing of the project. Its values are plain data, safe to
// copy and to read from several goroutines.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Ref names one config object: the object that a problem belongs to, or the origin
// of a piece of generated configuration. The zero Ref means "no object", as for
// configuration that follows from the mesh settings alone.
type Ref struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// String returns "Kind namespace/name", the form used in every message. Names come
// from files, so unprintable characters are escaped, as in Problem.String.
func (r Ref) String() string {
	switch {
	case r == Ref{}:
		return ""
	case r.Namespace == "":
		return printable(strings.TrimSpace(r.Kind + " " + r.Name))
	default:
		return printable(strings.TrimSpace(r.Kind + " " + r.Namespace + "/" + r.Name))
	}
}

// UniqueRefs returns the refs without the zero Ref, each once, in the order in which they
// come first.
func UniqueRefs(all []Ref) []Ref {
	var out []Ref
	for _, ref := range all {
		if ref != (Ref{}) && !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}

// Position is a place in a file or stream. Line and Column count from 1, and Column
// counts bytes. A zero Line means that the place is not known.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String returns "file:line:column" without the unknown parts.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.File == "":
		return fmt.Sprintf("line %d, column %d", p.Line, p.Column)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

// Severity reports whether a problem stops an object from being stored.
type Severity string

const (
	// Error means that the object is refused and nothing is changed.
	Error Severity = "error"
	// Warning means that the object is stored, but part of it has no effect or not
	// the effect that its author may expect.
	Warning Severity = "warning"
)

// Reason is a stable code for programs. The Field* values are those of the
// Kubernetes API conventions (metav1.CauseType), so that a Status carries them
// unchanged. The others are specific to this project.
type Reason string

const (
	FieldRequired     Reason = "FieldValueRequired"
	FieldInvalid      Reason = "FieldValueInvalid"
	FieldTypeInvalid  Reason = "FieldValueTypeInvalid"
	FieldNotSupported Reason = "FieldValueNotSupported"
	FieldForbidden    Reason = "FieldValueForbidden"
	FieldDuplicate    Reason = "FieldValueDuplicate"
	FieldTooLong      Reason = "FieldValueTooLong"
	// FieldUnknown means that the kind has no such field.
	FieldUnknown Reason = "FieldUnknown"
	// Malformed means that the text is not YAML, JSON or a single document.
	Malformed Reason = "Malformed"
	// NotHonoured marks a valid field that the generated configuration cannot
	// follow. The message says why.
	NotHonoured Reason = "NotHonoured"
	// Conflict means that two objects claim the same thing. The message names both.
	Conflict Reason = "Conflict"
	// NoSuchReference means that the object names a service, port or subset that
	// the registry does not have.
	NoSuchReference Reason = "NoSuchReference"
)

// Problem is one complaint about one object.
type Problem struct {
	Severity Severity `json:"severity"`
	Reason   Reason   `json:"reason"`
	Code     Code     `json:"code,omitempty"`
	Object   Ref      `json:"object"`
	// Field is the path as it is written back: "spec.route[0].weight". It is empty
	// when the whole object is meant.
	Field string `json:"field,omitempty"`
	// Value is the value found, as short JSON. It is empty when there was none.
	Value string `json:"value,omitempty"`
	// Message says what is wrong and what is allowed instead.
	Message  string    `json:"message"`
	Position *Position `json:"position,omitempty"`
}

// String returns one line for people:
// "file:3:5: RouteRule default/x: spec.route[0].weight: must be …, found 101".
// Unprintable characters, such as a terminal's control codes, are escaped as in a
// Go string.
func (p Problem) String() string {
	var parts []string
	if p.Position != nil {
		if s := p.Position.String(); s != "" {
			parts = append(parts, s)
		}
	}
	for _, s := range []string{p.Object.String(), p.Field} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	msg := p.Message
	if p.Value != "" {
		msg += ", found " + p.Value
	}
	return printable(strings.Join(append(parts, msg), ": "))
}

// Coded returns String with the code, if any, in front: "PA0101: RouteRule
// default/x: …".
func (p Problem) Coded() string {
	if p.Code == "" {
		return p.String()
	}
	return string(p.Code) + ": " + p.String()
}

// List holds every problem found in one pass. It is an error if at least one
// Problem has the severity Error: use Err.
type List []Problem

// Err returns the list if it holds an Error, and nil if it holds warnings only.
func (l List) Err() error {
	if len(l.Errors()) == 0 {
		return nil
	}
	return l
}

// Errors returns the problems with the severity Error.
func (l List) Errors() List { return l.only(Error) }

// Warnings returns the problems with the severity Warning.
func (l List) Warnings() List { return l.only(Warning) }

// Coded returns a copy of the list in which problems without a code have the given
// one. The caller owns it.
func (l List) Coded(code Code) List {
	out := slices.Clone(l)
	for i := range out {
		out[i].Code = cmp.Or(out[i].Code, code)
	}
	return out
}

func (l List) only(s Severity) List {
	var out List
	for _, p := range l {
		if p.Severity == s {
			out = append(out, p)
		}
	}
	return out
}

// Error joins all problems, one per line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, p := range l {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
