// Package diag holds the one vocabulary of complaints in this project. What a
// JSON Schema finds in a file, what a semantic check finds in an object, what
// the compiler cannot honour and what a back-end cannot spell are all a
// Problem, so that a person reads them in one shape wherever they come up.
//
// The package imports nothing of the project. Its values are plain data, safe
// to copy and to read from several goroutines.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Ref names one config object: the object a problem belongs to, or the origin
// of a piece of generated configuration. The zero Ref means "no object", as
// for configuration that follows from the mesh settings alone.
type Ref struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// String is "Kind namespace/name", the form used in every message. Names come
// from files, so what is not printable is escaped, as in Problem.String.
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

// Position is a place in a file or stream. Line and Column count from 1, the
// column in bytes; a zero Line means that the place is not known.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String is "file:line:column" with the unknown parts left out.
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
	// Error: the object is refused, nothing is changed.
	Error Severity = "error"
	// Warning: the object is stored, but part of it has no effect or not
	// the effect that its author may expect.
	Warning Severity = "warning"
)

// Reason is a stable code for programs. The Field* values are those of the
// Kubernetes API conventions (metav1.CauseType), so that a Status carries them
// unchanged; the others are ours.
type Reason string

const (
	FieldRequired     Reason = "FieldValueRequired"
	FieldInvalid      Reason = "FieldValueInvalid"
	FieldTypeInvalid  Reason = "FieldValueTypeInvalid"
	FieldNotSupported Reason = "FieldValueNotSupported"
	FieldForbidden    Reason = "FieldValueForbidden"
	FieldDuplicate    Reason = "FieldValueDuplicate"
	FieldTooLong      Reason = "FieldValueTooLong"
	// FieldUnknown: the kind has no such field.
	FieldUnknown Reason = "FieldUnknown"
	// Malformed: the text is no YAML, JSON or single document.
	Malformed Reason = "Malformed"
	// NotHonoured: a valid field that the generated configuration cannot
	// follow, with the detail of why in the message.
	NotHonoured Reason = "NotHonoured"
	// Conflict: two objects claim the same thing; the message names both.
	Conflict Reason = "Conflict"
	// NoSuchReference: the object names a service, port or subset that the
	// registry does not have.
	NoSuchReference Reason = "NoSuchReference"
)

// Problem is one complaint about one object.
type Problem struct {
	Severity Severity `json:"severity"`
	Reason   Reason   `json:"reason"`
	Code     Code     `json:"code,omitempty"`
	Object   Ref      `json:"object"`
	// Field is the path in the spelling that is written back:
	// "spec.route[0].weight". Empty when the whole object is meant.
	Field string `json:"field,omitempty"`
	// Value is what was found, as short JSON. Empty when nothing was.
	Value string `json:"value,omitempty"`
	// Message says what is wrong and what is allowed instead.
	Message  string    `json:"message"`
	Position *Position `json:"position,omitempty"`
}

// String is one line for people:
// "file:3:5: RouteRule default/x: spec.route[0].weight: must be …, found 101".
// What is not printable, such as a terminal's control codes, is escaped as in
// a Go string.
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

// Coded is String behind the code, if there is one: "PA0101: RouteRule default/x: …".
func (p Problem) Coded() string {
	if p.Code == "" {
		return p.String()
	}
	return string(p.Code) + ": " + p.String()
}

// List is every problem found in one go. It is an error when it holds at
// least one Problem of severity Error: use Err.
type List []Problem

// Err is nil when the list holds warnings only, else the list itself.
func (l List) Err() error {
	if len(l.Errors()) == 0 {
		return nil
	}
	return l
}

// Errors are the problems that refuse the object.
func (l List) Errors() List { return l.only(Error) }

// Warnings are the problems that do not.
func (l List) Warnings() List { return l.only(Warning) }

// Coded is the list with a code for those that have none. It is the caller's.
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

// Error joins all problems, one a line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, p := range l {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
