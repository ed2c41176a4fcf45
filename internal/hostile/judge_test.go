package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// complaints are what is wrong with a combination.
type complaints []string

func (c *complaints) add(format string, args ...any) { *c = append(*c, fmt.Sprintf(format, args...)) }

// about says of which objects they are.
func (c complaints) about(combination int, d *draw) complaints {
	out := append(slices.Clone(c), fmt.Sprintf("combination %d is of %d objects, %v:", combination, len(d.out), d.shapes))
	const most = 12
	for _, o := range d.out[:min(most, len(d.out))] {
		out.add("  %v", o)
	}
	return out
}

func (c complaints) String() string { return strings.Join(c, "\n") }

// probe is where an object shows whether it is withheld.
type probe struct {
	cluster   string // whose endpoints are those of the object
	endpoints int    // how many it has
	domain    string // of a virtual host in the table for port 80 of the hostile proxy
}

// found is what became of a combination.
type found struct {
	objects       []object
	stored, apart bool
	refused       []refusal
	problems      diag.List
	told, quiet   map[string]answers // by the name of the proxy
}

// present are the objects that were not refused.
func (f *found) present() []object {
	return slices.DeleteFunc(slices.Clone(f.objects), func(o object) bool {
		return slices.ContainsFunc(f.refused, func(r refusal) bool { return r.object.ref() == o.ref() })
	})
}

// clusters are those whose endpoints are looked at.
func (f *found) clusters() []string {
	var out []string
	for _, o := range f.present() {
		if o.probe != nil && o.probe.cluster != "" {
			out = append(out, o.probe.cluster)
		}
	}
	return out
}

// isBudget is false for the word that there are more of them.
func isBudget(p diag.Problem) bool {
	if strings.HasSuffix(p.Message, "more problems of the object are not listed") {
		return false
	}
	return p.Code == diag.OverBudget || p.Code == diag.NotPublished
}

// withheld are the objects that are said to be.
func (f *found) withheld() map[diag.Ref]bool {
	out := map[diag.Ref]bool{}
	for _, p := range f.problems {
		if p.Code == diag.OverBudget {
			out[p.Object] = true
		}
	}
	return out
}

// judge finds what is not as it must be.
func (f *found) judge() (out complaints) {
	f.judgeRefusals(&out)
	f.judgeProblems(&out)
	f.judgeStored(&out)
	f.judgeProbes(&out)
	of := everywhere
	if f.apart {
		of = honest
	}
	out.compare("beside the hostile objects", f.quiet, f.told, of)
	return out
}

// numbers are those of a refusal: what the object comes to, and what it may.
var numbers = regexp.MustCompile(`= (more than )?[0-9,]+ parts, and must be at most ` + schema.Thousands(schema.MaxProduct))

// judgeRefusals: an object is refused for what it multiplies to and nothing else, with
// the numbers.
func (f *found) judgeRefusals(out *complaints) {
	for _, r := range f.refused {
		if !strings.Contains(r.text, "multiplies to too much") || !numbers.MatchString(r.text) {
			out.add("%v is refused without the numbers: %d: %.1000s", r.object.ref(), r.code, r.text)
		}
	}
}

// judgeProblems: those of budgets are of hostile objects, with the numbers.
func (f *found) judgeProblems(out *complaints) {
	hostile := map[diag.Ref]bool{}
	for _, o := range f.present() {
		hostile[o.ref()] = true
	}
	for _, p := range f.problems {
		switch {
		case !isBudget(p):
		case p.Code == diag.NotPublished:
			out.add("a view is not published: %v", p)
		case !hostile[p.Object]:
			out.add("an honest object is to blame: %v", p)
		case !strings.Contains(p.Message, schema.Thousands(budgetOf.Object)) && !strings.Contains(p.Message, schema.Thousands(budgetOf.Mesh)):
			out.add("the budget is not told: %v", p)
		}
	}
}

// judgeStored: what could not be written is withheld where it is stored.
func (f *found) judgeStored(out *complaints) {
	if !f.stored {
		return
	}
	withheld := f.withheld()
	for _, o := range f.objects {
		if overByItself(o) && !withheld[o.ref()] {
			out.add("%v multiplies to too much by itself, and no Problem says that it is withheld", o)
		}
	}
}

// overByItself reports whether a ServiceEntry comes to more than an object may.
func overByItself(o object) bool {
	if o.kind != "ServiceEntry" {
		return false
	}
	length := func(field string) int {
		var list []any
		text, _ := json.Marshal(o.spec[field])
		_ = json.Unmarshal(text, &list)
		return len(list)
	}
	return length("hosts")*length("ports")*(8+4*length("addresses")+length("endpoints")) > budgetOf.Object
}

// judgeProbes: an object is closed if its Problems say so, and only then.
func (f *found) judgeProbes(out *complaints) {
	withheld := f.withheld()
	for _, o := range f.present() {
		if o.probe == nil || f.isHidden(o) {
			continue
		}
		open := f.isOpen(*o.probe)
		switch {
		case open && withheld[o.ref()]:
			out.add("%v is said to be withheld, and is not", o)
		case !open && !withheld[o.ref()]:
			out.add("%v is withheld, and no Problem says so: %v", o, f.problemsOf(o))
		}
	}
}

// isHidden reports whether the hostile proxy need not see an object.
func (f *found) isHidden(o object) bool {
	return o.probe.domain != "" && slices.ContainsFunc(f.objects, func(other object) bool { return other.kind == "Sidecar" })
}

func (f *found) isOpen(p probe) bool {
	if p.domain == "" {
		return strings.Count(f.told["beside"]["endpoints "+p.cluster], `"endpoint":`) == p.endpoints
	}
	for key, text := range f.told["hostile"] {
		if !strings.HasPrefix(key, "routes 80 ") || !strings.Contains(text, `"`+p.domain+`"`) {
			continue
		}
		var host struct {
			Routes []struct {
				DirectResponse *struct{ Status int } `json:"direct_response"`
			}
		}
		if json.Unmarshal([]byte(text), &host) != nil {
			return false
		}
		for _, r := range host.Routes {
			if r.DirectResponse == nil || r.DirectResponse.Status != 503 {
				return true
			}
		}
	}
	return false
}

// problemsOf are some of those of an object.
func (f *found) problemsOf(o object) diag.List {
	out := slices.DeleteFunc(slices.Clone(f.problems), func(p diag.Problem) bool { return p.Object != o.ref() })
	return out[:min(3, len(out))]
}

// scope is which resources are compared, and how.
type scope func(key, text string) (compared, content bool)

// everything must be the same.
func everything(string, string) (bool, bool) { return true, true }

// honest: what belongs to the quiet mesh is the same, and what many share is there.
func honest(key, _ string) (bool, bool) {
	isQuiet := strings.Contains(key, "quiet")
	return isQuiet || !strings.HasPrefix(key, "routes"), isQuiet
}

// everywhere: the endpoints of the quiet mesh are the same. Rules for its hosts may send
// requests elsewhere, so that clusters are not needed.
func everywhere(key, _ string) (bool, bool) { return strings.HasPrefix(key, "endpoints "), true }

// atTheEnd is when nothing hostile is left.
const atTheEnd = "after the end of all hostile objects"

// compare looks whether proxies are told now what they were told before.
func (c *complaints) compare(when string, before, now map[string]answers, of scope) {
	for _, p := range proxies {
		if p.isHostile() && when != atTheEnd {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(before[p.name])) {
			text := before[p.name][key]
			compared, content := of(key, text)
			other, is := now[p.name][key]
			switch {
			case !compared:
			case !is:
				c.add("%s, %s is not told of %s", when, p.name, key)
			case content && other != text:
				c.add("%s, %s is told otherwise of %s:\n  %.2000s\n  %.2000s", when, p.name, key, text, other)
			}
		}
		if when == atTheEnd {
			for key := range now[p.name] {
				if _, was := before[p.name][key]; !was {
					c.add("%s, %s is still told of %s", when, p.name, key)
				}
			}
		}
	}
}
