package describe

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/proxies"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/schema"
)

// mostDescribed is the maximum number of lines in a list of a description.
const mostDescribed = 50

// write prints the description for a person, as kubectl's describe does.
func (d *description) write(w io.Writer) error {
	p := newDescriptionWriter(w, d.Object.Kind)
	d.writeHead(p)
	if err := d.writeStatus(p); err != nil {
		return err
	}
	d.writeReferences(p)
	p.list("Problems", "SEVERITY\tCODE\tFIELD\tPROBLEM", len(d.problems), func(i int) string {
		one := d.problems[i]
		return string(one.Severity) + "\t" + string(one.Code) + "\t" + one.Field + "\t" + diag.Problem{Message: one.Message, Value: one.Value}.String()
	})
	if d.live {
		d.writeChanges(p)
		if d.noProxies != nil {
			p.printf("Proxies: not shown: %v\n", d.noProxies)
			return p.err
		}
		p.list("Proxies", "PROXY\tROLE\tTRANSPORT\tSTATE\tREVISION", len(d.proxies), func(i int) string { return d.proxyRow(d.proxies[i]) })
	}
	return p.err
}

func (d *description) writeReferences(p *descriptionWriter) {
	p.list("Refers To", "FIELD\tOBJECT\tNAMES", len(d.RefersTo), func(i int) string {
		r := d.RefersTo[i]
		object := cmp.Or(r.To.String(), printer.None)
		if r.Missing && r.To != (diag.Ref{}) {
			object += " (missing)"
		}
		return r.Field + "\t" + object + "\t" + r.Names
	})
	p.list("Referred By", "OBJECT\tFIELD\tNAMES", len(d.ReferredBy), func(i int) string {
		r := d.ReferredBy[i]
		return r.From.String() + "\t" + r.Field + "\t" + r.Names
	})
	if d.Omitted > 0 {
		p.printf("  … and %s that the server does not tell\n", cli.Count(d.Omitted, "reference"))
	}
}

// descriptionWriter writes names with their values in one column, and tables below a
// name.
type descriptionWriter struct {
	out   io.Writer
	width int // of names
	err   error
}

func newDescriptionWriter(out io.Writer, kind *schema.Kind) *descriptionWriter {
	width := len("Annotations")
	for _, c := range kind.Columns {
		width = max(width, len(c.Name))
	}
	return &descriptionWriter{out: out, width: width + 3}
}

func (p *descriptionWriter) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format, args...); err != nil && p.err == nil {
		p.err = err
	}
}

// line prints a name with its value, or with several values below each other.
func (p *descriptionWriter) line(name string, values ...string) {
	if len(values) == 0 {
		values = []string{printer.None}
	}
	name += ":"
	for _, value := range values {
		p.printf("%-*s%s\n", p.width, name, terminal.Line(value))
		name = ""
	}
}

// list prints a table under a name, up to mostDescribed rows.
func (p *descriptionWriter) list(name, head string, n int, row func(i int) string) {
	if n == 0 {
		p.line(name)
		return
	}
	p.printf("%s:\n", name)
	tab := printers.GetNewTabWriter(p.out)
	if head != "" {
		fmt.Fprintf(tab, "  %s\n", head)
	}
	for i := range min(n, mostDescribed) {
		cells := strings.Split(row(i), "\t")
		for i, cell := range cells {
			cells[i] = terminal.Line(cell)
		}
		fmt.Fprintf(tab, "  %s\n", strings.Join(cells, "\t"))
	}
	p.err = cmp.Or(p.err, tab.Flush())
	if n > mostDescribed {
		p.printf("  … and %d more\n", n-mostDescribed)
	}
}

func (d *description) writeHead(p *descriptionWriter) {
	meta := d.Meta
	p.line("Name", meta.Name)
	p.line("Namespace", meta.Namespace)
	p.line("Kind", d.Object.Kind.Kind)
	p.line("API Version", d.Object.Kind.APIVersion())
	p.line("Labels", pairLines(meta.Labels, "=")...)
	p.line("Annotations", pairLines(meta.Annotations, ": ")...)
	d.writeWritten(p)
	for _, c := range d.Object.Kind.Columns {
		p.line(c.Name, cmp.Or(c.Cell(d.Object), printer.None))
	}
	for _, part := range partsOf(d.Object) {
		p.list(part.name, part.head, len(part.rows), func(i int) string { return part.rows[i] })
	}
}

// lastApplied is the annotation in which kubectl keeps a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func pairLines(pairs map[string]string, between string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		if name != lastApplied {
			out = append(out, name+between+pairs[name])
		}
	}
	return out
}

// writeStatus prints a line for each condition if there is a status.
func (d *description) writeStatus(p *descriptionWriter) error {
	status, err := d.Status()
	if err != nil || status == nil {
		return err
	}
	p.list("Status", "", len(status.Conditions), func(i int) string {
		c := status.Conditions[i]
		reason := ""
		if c.Reason != c.Type {
			reason = c.Reason
		}
		return strings.TrimRight(fmt.Sprintf("%s:\t%s\t%s", c.Type, c.Status, strings.Trim(reason+": "+c.Message, ": ")), "\t")
	})
	return nil
}

// writeWritten prints which state of the object this is, as far as it is known.
func (d *description) writeWritten(p *descriptionWriter) {
	if at := d.Meta.CreationTimestamp; !at.IsZero() {
		p.line("Created", fmt.Sprintf("%s (%s ago)", at.UTC().Format(time.RFC3339), duration.HumanDuration(time.Since(at.Time))))
	}
	if d.Object.Revision() > 0 {
		p.line("Revision", fmt.Sprintf("%d, generation %d", d.Object.Revision(), d.Meta.Generation))
	}
	if at := d.Meta.DeletionTimestamp; at != nil {
		p.line("Terminating", fmt.Sprintf("since %s, once no finalizer is left of %s", at.UTC().Format(time.RFC3339), strings.Join(d.Meta.Finalizers, ", ")))
	}
}

// mostChanges is the maximum number of changes in a description.
const mostChanges = 5

// writeChanges prints the newest changes of the object.
func (d *description) writeChanges(p *descriptionWriter) {
	p.list("Changes", "REVISION\tWHEN\tVERB\tWHO\tPROGRAM\tCHANGED", min(mostChanges, len(d.changes)), func(i int) string {
		e := d.changes[i]
		return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%s", e.Revision, e.WhenText(), e.VerbText(), e.Who(), e.UserAgentText(), e.ChangedText(false))
	})
	if more := len(d.changes) - mostChanges; more > 0 {
		p.printf("  … and %d more: istioctl history\n", more)
	}
}

// proxyRow prints whether a proxy runs the current state of the object. If the object
// is refused, a proxy that refuses something is not reported as running it: a part of
// a table may be unchanged while the proxy runs the rest of the revision.
func (d *description) proxyRow(one client.Proxy) string {
	state := proxies.Worst(one)
	if one.Revision >= d.Object.Revision() && !(d.refused() && strings.HasPrefix(state, proxies.Rejected)) {
		state = "runs it"
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%d", proxies.ShortNode(one.Node), one.Role, one.Transport, state, one.Revision)
}

// refused reports whether a proxy refuses what follows from the object.
func (d *description) refused() bool {
	status, err := d.Status()
	return err == nil && status != nil && status.Condition(schema.ConditionProgrammed).Reason == schema.ReasonRejected
}
