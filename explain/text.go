package explain

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/pilot-api/pilot-api/diag"
)

// Write writes the explanation for a person.
func (e *Explanation) Write(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	line := func(name string, texts ...string) {
		if text := strings.Join(texts, ""); text != "" {
			fmt.Fprintf(tab, "%s\t%s\n", name, text)
		}
	}
	line("REQUEST", e.Request.Method, " ", e.Request.Scheme, "://", e.Request.Host, e.Request.Path)
	if l := e.Listener; l != nil {
		line("LISTENER", l.Address, ", ", l.Direction, ", ", string(e.Request.Way), from(l.Origins))
	}
	if e.VirtualHost != "" {
		line("HOST", e.VirtualHost, ", by domain ", e.Domain)
	}
	for _, t := range e.Tokens {
		line("TOKEN", t.text(), from(t.Origins))
	}
	for _, a := range e.Access {
		line("ACCESS", a.text())
	}
	for _, passed := range e.Passed {
		line("NOT", cmp.Or(refs(passed.Origins), "a route"), prefixed(" ", passed.Name), ": ", passed.Failed)
	}
	if r := e.Route; r != nil {
		line("ROUTE", fmt.Sprintf("%d of %d: %s", r.Number, r.Of, r.Match))
		line("RULE", refs(r.Origins), prefixed(" ", r.Name))
	}
	if a := e.Answer; a != nil {
		line("ANSWER", number(a.Status), prefixed(" ", a.Location), prefixed(" ", a.Body))
	}
	if f := e.Forward; f != nil {
		f.write(line, e.Request)
	}
	line("REASON", e.Reason)
	return tab.Flush()
}

func (f *Forward) write(line func(name string, texts ...string), r Request) {
	for _, faults := range f.Faults {
		line("FAULT", faults)
	}
	if f.TCP {
		line("FORWARD", "the connection as it is")
	}
	if !f.TCP && f.Host != r.Host {
		line("REWRITE", "host ", f.Host)
	}
	if !f.TCP && f.Path != r.Path {
		line("REWRITE", "path ", f.Path)
	}
	line("TIMEOUT", f.Timeout)
	line("RETRIES", f.Retries)
	for _, m := range f.Mirrors {
		line("MIRROR", m)
	}
	line("HASH", strings.Join(f.Hash, ", "))
	line("CORS", f.CORS)
	for _, change := range f.RequestHeaders {
		line("HEADER", "of the request: ", change)
	}
	for _, change := range f.ResponseHeaders {
		line("HEADER", "of the response: ", change)
	}
	for _, c := range f.Clusters {
		line("CLUSTER", percent(c.Percent), " ", c.Name, from(c.Origins))
		if c.Host != "" {
			line("", "host ", c.Host)
		}
		for _, change := range c.RequestHeaders {
			line("", "of the request: ", change)
		}
		for _, change := range c.ResponseHeaders {
			line("", "of the response: ", change)
		}
		line("", strings.Join(c.Endpoints, ", "))
		line("", c.Note)
	}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func from(origins []diag.Ref) string { return prefixed(", of ", refs(origins)) }

func refs(origins []diag.Ref) string {
	texts := make([]string, len(origins))
	for i, o := range origins {
		texts[i] = o.String()
	}
	return strings.Join(texts, ", ")
}
