package explain

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/ir"
)

func number(n int) string { return strconv.Itoa(n) }

func known(address string) string { return cmp.Or(address, "not known") }

func destination(r Request) string {
	return net.JoinHostPort(cmp.Or(r.Address, "any address"), number(r.Port))
}

func serverName(r Request) string {
	if name := r.asks(); name != "" {
		return "server name " + name
	}
	return "no server name"
}

func either(texts []string) string { return strings.Join(texts, " or ") }

// pathText describes the condition on the path.
func pathText(m ir.Match, must bool) string {
	var text string
	switch {
	case m.Regex != "":
		return "path " + matches.say(must, false) + " " + m.Regex
	case m.Path != "":
		text = fmt.Sprintf("path %s %q", equals.say(must, false), m.Path)
	default:
		text = fmt.Sprintf("path %s %q", begins.say(must, false), cmp.Or(m.Prefix, "/"))
	}
	if m.IgnoreCase {
		text += " in any case"
	}
	return text
}

// subject names what a condition is about.
func subject(name string) string {
	if pseudo, ok := strings.CutPrefix(name, ":"); ok {
		return pseudo
	}
	return "header " + name
}

// headerText describes a condition on a header: as a requirement if must is set,
// else as a statement.
func headerText(h ir.HeaderMatch, must bool) string {
	value := func(text string) string { return quoted(h.Name, text) }
	switch {
	case h.Present:
		return subject(h.Name) + " " + there.say(must, h.Not)
	case h.Regex != "":
		return subject(h.Name) + " " + matches.say(must, h.Not) + " " + ir.Shown(h.Name, h.Regex)
	case h.Prefix != "":
		return subject(h.Name) + " " + begins.say(must, h.Not) + " " + value(h.Prefix)
	default:
		return subject(h.Name) + " " + equals.say(must, h.Not) + " " + value(h.Exact)
	}
}

func queryText(q ir.QueryMatch, must bool) string {
	about := "query parameter " + q.Name
	switch {
	case q.Present:
		return about + " " + there.say(must, false)
	case q.Regex != "":
		return about + " " + matches.say(must, false) + " " + ir.Shown(q.Name, q.Regex)
	default:
		return about + " " + equals.say(must, false) + " " + quoted(q.Name, q.Exact)
	}
}

func quoted(name, value string) string {
	if shown := ir.Shown(name, value); shown != value {
		return shown
	}
	return strconv.Quote(value)
}

// verb has the forms of a condition's verb: it must, it does, it does not.
type verb struct{ must, does, not string }

var (
	equals  = verb{"be", "is", "is not"}
	begins  = verb{"begin with", "begins with", "does not begin with"}
	matches = verb{"match", "matches", "does not match"}
	there   = verb{"be there", "is there", "is not there"}
)

func (v verb) say(must, not bool) string {
	switch {
	case must && not:
		return "must not " + v.must
	case must:
		return "must " + v.must
	case not:
		return v.not
	}
	return v.does
}

// matchText describes all conditions of a route.
func matchText(m ir.Match) string {
	var all []string
	if !m.AnyPath() {
		all = append(all, pathText(m, false))
	}
	for _, h := range m.Headers {
		all = append(all, headerText(h, false))
	}
	for _, q := range m.Query {
		all = append(all, queryText(q, false))
	}
	if len(all) == 0 {
		return "any request"
	}
	return strings.Join(all, ", ")
}

func tcpMatchText(r ir.TCPRoute) string {
	var all []string
	if len(r.Destinations) > 0 {
		all = append(all, "to "+either(r.Destinations))
	}
	if r.Port != 0 {
		all = append(all, "to port "+number(r.Port))
	}
	if len(r.ServerNames) > 0 {
		all = append(all, "server name "+either(r.ServerNames))
	}
	if len(all) == 0 {
		return "any connection"
	}
	return strings.Join(all, ", ")
}

func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func retryText(r *ir.Retry) string {
	if r == nil || r.Attempts == 0 {
		return ""
	}
	on := []string{cmp.Or(r.On, "5xx,connect-failure,refused-stream")}
	for _, code := range r.StatusCodes {
		on = append(on, number(code))
	}
	text := fmt.Sprintf("%d more on %s", r.Attempts, strings.Join(on, ","))
	if r.PerTryTimeout > 0 {
		text += ", " + r.PerTryTimeout.String() + " each"
	}
	if r.ByDefault {
		text += " (by default)"
	}
	return text
}

func faultTexts(f *ir.Fault) []string {
	if f == nil {
		return nil
	}
	var out []string
	if f.Delays() {
		out = append(out, fmt.Sprintf("%s wait %s", share(f.DelayPerMillion), f.Delay))
	}
	switch {
	case f.Aborts() && f.AbortGRPC != nil:
		out = append(out, fmt.Sprintf("%s are answered with gRPC status %d", share(f.AbortPerMillion), *f.AbortGRPC))
	case f.Aborts():
		out = append(out, fmt.Sprintf("%s are answered with %d", share(f.AbortPerMillion), f.AbortStatus))
	}
	return out
}

func mirrorTexts(mirrors []ir.Mirror) []string {
	var out []string
	for _, m := range mirrors {
		out = append(out, fmt.Sprintf("%s to %s", share(m.PerMillion), m.Cluster))
	}
	return out
}

func share(perMillion int) string { return percent(float64(perMillion) / 10_000) }

func percent(p float64) string { return strconv.FormatFloat(p, 'g', 4, 64) + "%" }

func hashTexts(keys []ir.HashKey) []string {
	var out []string
	for _, k := range keys {
		switch {
		case k.Header != "":
			out = append(out, "header "+k.Header)
		case k.Query != "":
			out = append(out, "query parameter "+k.Query)
		case k.Cookie != nil:
			out = append(out, "cookie "+k.Cookie.Name)
		default:
			out = append(out, "the caller's address")
		}
	}
	return out
}

func corsText(c *ir.CORS) string {
	if c == nil {
		return ""
	}
	var origins []string
	for _, o := range c.AllowOrigins {
		switch {
		case o.Regex != "":
			origins = append(origins, "like "+o.Regex)
		case o.Prefix != "":
			origins = append(origins, o.Prefix+"…")
		default:
			origins = append(origins, o.Exact)
		}
	}
	return "for origins " + cmp.Or(either(origins), "of nobody")
}

func headerChanges(o ir.HeaderOperations) []string {
	var out []string
	for _, h := range o.Set {
		out = append(out, "set "+h.Name+": "+ir.Shown(h.Name, h.Value))
	}
	for _, h := range o.Append {
		out = append(out, "add "+h.Name+": "+ir.Shown(h.Name, h.Value))
	}
	for _, name := range o.Remove {
		out = append(out, "remove "+name)
	}
	return out
}

func endpointText(e ir.Endpoint) string {
	if _, socket := e.Socket(); socket {
		return e.Host
	}
	return e.Address().String()
}
