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

// problems collects the findings of a check. The methods named after a Reason add
// errors; warn adds a warning. The caller that knows the object and the position
// fills them in at the end.
//
// For each severity it keeps one problem more than are reported, to show that some
// are left out. In addition it keeps the first warning of each code, because the
// codes decide whether an object is honoured.
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

// full reports whether no more problems of a severity are kept.
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

// repeated rejects entry i of a list if an earlier one has the same value. seen
// maps values to the entries that had them first.
func repeated[V comparable](p *problems, field, list string, seen map[V]int, value V, i int) bool {
	first, given := seen[value]
	if given {
		p.duplicate(field, fmt.Sprintf("is already given in %s[%d]", list, first))
	} else {
		seen[value] = i
	}
	return given
}

// warn adds a warning about a field without effect.
func (p *problems) warn(field, message string) { p.warnOf(diag.NoEffect, field, message) }

// suspect adds a warning about a setting that proxies follow and that is hardly
// ever intended.
func (p *problems) suspect(field, message string) { p.warnOf(diag.Suspicious, field, message) }

func (p *problems) warnOf(code diag.Code, field, message string) {
	p.put(diag.Problem{Severity: diag.Warning, Reason: diag.NotHonoured, Code: code, Field: field, Message: message})
}

// advise runs a check whose errors are only warnings here. suffix completes their
// messages.
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

// some joins as many texts as a person would read.
func some(texts []string) string {
	const most = 10
	if len(texts) <= most {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), len(texts)-most)
}

// short returns a value as JSON that is short enough for a message.
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

// keyField returns the path of a member. Field paths are texts:
// "spec.route[0].weight", "metadata.labels[a.b/c]". keyField and splitField write
// and read them; an index is a key that is not an identifier.

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
