package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
)

// problems gathers what a check finds. The methods named after a Reason refuse
// the object; warn does not. The object and the position are filled in at the
// end, by the one place that knows them.
//
// Of each severity one problem more is kept than is ever told, so that it shows
// when some are left out. Besides, the first warning of each code is kept: whether an
// object is honoured hangs on the codes.
type problems struct {
	list  diag.List
	found map[diag.Severity]int
}

func (p *problems) add(severity diag.Severity, reason diag.Reason, field, value, message string) {
	p.put(diag.Problem{Severity: severity, Reason: reason, Code: diag.CodeOf(reason), Field: field, Value: value, Message: message})
}

func (p *problems) put(found ...diag.Problem) {
	for _, one := range found {
		if p.full(one.Severity) && (one.Severity == diag.Error || p.warnedOf(one.Code)) {
			continue
		}
		if p.found == nil {
			p.found = map[diag.Severity]int{}
		}
		p.found[one.Severity]++
		p.list = append(p.list, one)
	}
}

// full tells that no more of a severity are kept.
func (p *problems) full(severity diag.Severity) bool { return p.found[severity] > mostProblems }

func (p *problems) warnedOf(code diag.Code) bool {
	return slices.ContainsFunc(p.list, func(w diag.Problem) bool { return w.Severity == diag.Warning && w.Code == code })
}

func (p *problems) required(field, message string) {
	p.add(diag.Error, diag.FieldRequired, field, "", message)
}

func (p *problems) forbidden(field, message string) {
	p.add(diag.Error, diag.FieldForbidden, field, "", message)
}

func (p *problems) invalid(field, message string) {
	p.add(diag.Error, diag.FieldInvalid, field, "", message)
}

func (p *problems) invalidValue(field string, value any, message string) {
	p.add(diag.Error, diag.FieldInvalid, field, short(value), message)
}

func (p *problems) notSupported(field, message string) {
	p.add(diag.Error, diag.FieldNotSupported, field, "", message)
}

func (p *problems) notSupportedValue(field string, value any, message string) {
	p.add(diag.Error, diag.FieldNotSupported, field, short(value), message)
}

func (p *problems) duplicate(field, message string) {
	p.add(diag.Error, diag.FieldDuplicate, field, "", message)
}

// repeated refuses the entry i of a list for a value that an earlier one has.
// Values and the entries that had them first are kept in seen.
func repeated[V comparable](p *problems, field, list string, seen map[V]int, value V, i int) bool {
	first, given := seen[value]
	if given {
		p.duplicate(field, fmt.Sprintf("is already given in %s[%d]", list, first))
	} else {
		seen[value] = i
	}
	return given
}

// warn is about what changes nothing.
func (p *problems) warn(field, message string) { p.warnOf(diag.NoEffect, field, message) }

// suspect is about what proxies do as it is written, and hardly anybody wants.
func (p *problems) suspect(field, message string) { p.warnOf(diag.Suspicious, field, message) }

func (p *problems) warnOf(code diag.Code, field, message string) {
	p.put(diag.Problem{Severity: diag.Warning, Reason: diag.NotHonoured, Code: code, Field: field, Message: message})
}

// advise runs a check whose errors do not refuse the object here; so says its
// suffix.
func (p *problems) advise(check func(*problems), suffix string) {
	var inner problems
	check(&inner)
	for _, found := range inner.list {
		if found.Severity == diag.Error {
			found.Severity, found.Reason, found.Code = diag.Warning, diag.NotHonoured, diag.NoEffect
			found.Message += "; it " + suffix
		}
		p.put(found)
	}
}

// some are texts for a message, as many as a person would read.
func some(texts []string) string {
	const most = 10
	if len(texts) <= most {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), len(texts)-most)
}

// short is a value as JSON that fits in a message.
func short(value any) string {
	const most = 80
	text, err := json.Marshal(value)
	if err != nil || credential.HoldsKey(string(text)) {
		return ""
	}
	if len(text) <= most {
		return string(text)
	}
	cut := most
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return string(text[:cut]) + "…"
}

// Field paths are texts: "spec.route[0].weight", "metadata.labels[a.b/c]".
// keyField and splitField are the two ends of that one syntax; an index is a
// key that is no identifier.

func keyField(parent, key string) string {
	switch {
	case !isIdentifier(key):
		return parent + "[" + key + "]"
	case parent == "":
		return key
	}
	return parent + "." + key
}

func isIdentifier(key string) bool {
	for i, r := range key {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return key != ""
}

func splitField(field string) []string {
	var steps []string
	for field != "" {
		var step string
		if inner, ok := strings.CutPrefix(field, "["); ok {
			step, field, _ = strings.Cut(inner, "]")
		} else {
			end := strings.IndexAny(field, ".[")
			if end < 0 {
				end = len(field)
			}
			step, field = field[:end], field[end:]
		}
		steps = append(steps, step)
		field = strings.TrimPrefix(field, ".")
	}
	return steps
}
