package reach

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/explain"
)

// mostNamed is how many callers a row names.
const mostNamed = 100

// rowsOf returns the answers of a port, callers with the same answer in one row.
func (a *asked) rowsOf(to *callee, callers []*caller) []explain.ReachRow {
	byText := map[string][]*caller{}
	found := map[string]outcome{}
	var texts []string
	for _, from := range callers {
		one := a.outcome(from, to)
		text := one.text()
		if _, known := found[text]; !known {
			texts = append(texts, text)
			found[text] = one
		}
		byText[text] = append(byText[text], from)
	}
	var rows []explain.ReachRow
	for _, text := range texts {
		names := a.namesOf(byText[text])
		rows = append(rows, explain.ReachRow{
			From: names[:min(len(names), mostNamed)], Callers: len(byText[text]), To: to.service.Hostname, Namespace: to.service.Namespace, Port: to.port.Number, Protocol: string(to.port.Protocol),
			TLS: found[text].tls, Enforced: found[text].enforced, Call: found[text].Call,
		})
	}
	slices.SortStableFunc(rows, func(x, y explain.ReachRow) int { return cmp.Compare(x.Answer, y.Answer) })
	return rows
}

// text is equal for outcomes that share a row.
func (o outcome) text() string {
	text, _ := json.Marshal(o.Call) // Texts always encode.
	return strings.Join([]string{string(text), o.tls, o.enforced}, "\n")
}

// namesOf returns the names of callers. NAMESPACE/* stands for all accounts of a namespace, if there
// are several.
func (a *asked) namesOf(callers []*caller) []string {
	byNamespace := map[string][]string{}
	var out []string
	for _, c := range callers {
		if !slices.Contains(byNamespace[c.namespace], c.name) {
			byNamespace[c.namespace] = append(byNamespace[c.namespace], c.name)
		}
	}
	for namespace, names := range byNamespace {
		if all := a.accounts[namespace]; len(names) == all && all > 1 {
			names = []string{namespace + "/*"}
		}
		out = append(out, names...)
	}
	slices.Sort(out)
	return out
}
