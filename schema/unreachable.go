package schema

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

// unreachable warns of routes, and conditions of routes, that have no effect
// because earlier ones take everything that they would match. It finds an earlier
// route for everything, and an equal condition; for HTTP also one of the first
// mostCompared conditions that covers it.
func (p *problems) unreachable(s *networking.VirtualService) {
	http, wider := order{problems: p, list: "spec.http"}, covering{problems: p}
	for i, r := range s.Http {
		// Requests that a delegate does not match go on to the next route.
		if r.Delegate == nil {
			texts := conditions(r.Match)
			http.route(i, texts)
			wider.route(i, r.Match, texts)
		}
	}
	tls := order{problems: p, list: "spec.tls"}
	for i, r := range s.Tls {
		tls.route(i, conditions(r.Match))
	}
	tcp := order{problems: p, list: "spec.tcp"}
	for i, r := range s.Tcp {
		tcp.route(i, conditions(r.Match))
	}
}

// mostCompared is the number of conditions that later ones are compared with. To
// compare each with all before it would take quadratic time.
const mostCompared = 100

// covering records the first mostCompared conditions of HTTP routes.
type covering struct {
	*problems
	before []placed
	all    bool // a route for everything was there, which order reports
}

// placed is a condition of an HTTP route.
type placed struct {
	route int
	match *networking.HTTPMatchRequest
	text  string
}

// route warns of conditions of which an earlier route takes all requests, except those
// that order finds.
func (c *covering) route(i int, matches []*networking.HTTPMatchRequest, texts []string) {
	if c.all = c.all || slices.Contains(texts, ""); c.all || len(texts) != len(matches) {
		return
	}
	for j, m := range matches {
		takes := func(e placed) bool { return e.route < i && e.text != texts[j] && covers(e.match, m) }
		switch at := slices.IndexFunc(c.before, takes); {
		case at >= 0:
			c.warnOf(diag.NeverUsed, fmt.Sprintf("spec.http[%d].match[%d]", i, j), fmt.Sprintf("has no effect: spec.http[%d] takes all its requests; put it before that one", c.before[at].route))
		case len(c.before) < mostCompared:
			c.before = append(c.before, placed{i, m, texts[j]})
		}
	}
}

// conditions returns texts that are equal if the conditions are; "" matches
// everything.
func conditions[M proto.Message](matches []M) []string {
	if len(matches) == 0 {
		return []string{""}
	}
	out := make([]string, len(matches))
	for i, m := range matches {
		var text []byte
		var err error
		switch match := proto.Message(m).(type) {
		case *networking.HTTPMatchRequest:
			unnamed := proto.CloneOf(match)
			unnamed.Name, unnamed.StatPrefix = "", ""
			text, err = proto.MarshalOptions{Deterministic: true}.Marshal(unnamed)
		default:
			text, err = proto.MarshalOptions{Deterministic: true}.Marshal(m)
		}
		if err != nil {
			return nil
		}
		out[i] = string(text)
	}
	return out
}

// order records which route of a list first had a condition.
type order struct {
	*problems
	list  string
	first map[string]int
}

func (o *order) route(i int, conditions []string) {
	if all, taken := o.first[""]; taken {
		o.warnOf(diag.NeverUsed, indexField(o.list, i), fmt.Sprintf("is never reached: %s[%d] takes everything; put it last", o.list, all))
		return
	}
	if o.first == nil {
		o.first = map[string]int{}
	}
	for j, condition := range conditions {
		if earlier, taken := o.first[condition]; taken {
			o.warnOf(diag.NeverUsed, fmt.Sprintf("%s[%d].match[%d]", o.list, i, j), fmt.Sprintf("has no effect: %s[%d] has the same condition", o.list, earlier))
			continue
		}
		o.first[condition] = i
	}
}
