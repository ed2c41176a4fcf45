package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pilot-api/pilot-api/diag"
)

// Reach says who can call whom.
type Reach struct {
	Revision int64 `json:"revision,omitempty"` // of the objects
	// Assumed is set if nobody knows which workloads have a proxy. Then all are taken to have one.
	Assumed bool `json:"assumed,omitempty"`
	// Limited is set if services and callers of some namespaces are left out.
	Limited bool `json:"limited,omitempty"`
	// Matrix has the calls between namespaces, and Rows those between accounts and ports. One of
	// them is nil.
	Matrix []ReachCell `json:"matrix,omitempty"`
	Rows   []ReachRow  `json:"rows,omitempty"`
	// Omitted is the number of further cells or rows.
	Omitted int `json:"omitted,omitempty"`
}

// ReachCell counts the calls from the accounts of a namespace to the ports of the services of
// another one. From is Outside for callers without an identity.
type ReachCell struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Allowed int    `json:"allowed"`
	Denied  int    `json:"denied"`
	Depends int    `json:"depends"`
	// Unenforced is how many of these nobody enforces, because a workload has no proxy.
	Unenforced int `json:"unenforced,omitempty"`
}

// Outside are callers outside the mesh: they send plain text from an unknown address.
const Outside = "outside"

// ReachRow says what becomes of the calls of some callers to a port of a service.
type ReachRow struct {
	// From are callers, NAMESPACE/ACCOUNT or Outside. Callers is their number, and From may have fewer.
	From      []string `json:"from"`
	Callers   int      `json:"callers"`
	To        string   `json:"to"` // the host
	Namespace string   `json:"namespace"`
	Port      int      `json:"port"`
	Protocol  string   `json:"protocol,omitempty"`
	// TLS says how the connections begin.
	TLS string `json:"tls"`
	// Enforced says if a proxy enforces the answer: yes, no, partly or unknown.
	Enforced string `json:"enforced"`
	Call
}

// HideObjects leaves out the names of objects for which hidden returns true.
func (r *Reach) HideObjects(hidden func(diag.Ref) bool) {
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Origins = slices.DeleteFunc(slices.Clone(row.Origins), hidden)
		row.By = slices.Clone(row.By)
		for j := range row.By {
			if slices.ContainsFunc(row.By[j].Origins, hidden) {
				row.By[j].Policy, row.By[j].Origins = "a policy that you may not read", nil
			}
		}
	}
}

// Write writes tables for people. wide names all callers and rules.
func (r *Reach) Write(w io.Writer, wide bool) error {
	var text strings.Builder
	tab := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	switch {
	case r.Matrix == nil:
		r.writeRows(tab, wide)
	case wide || len(r.namespaces()) > mostColumns:
		r.writeCells(tab)
	default:
		r.writeMatrix(tab)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	if r.Assumed {
		text.WriteString("Each workload is taken to have a proxy: files do not say which have one.\n")
	}
	if r.Limited {
		text.WriteString("There may be other services and callers, in namespaces that you may not read.\n")
	}
	if r.Omitted > 0 {
		fmt.Fprintf(&text, "%d more are left out: ask about fewer with --from and --to, or raise --limit\n", r.Omitted)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// mostColumns is how many namespaces fit as columns on a screen.
const mostColumns = 10

func (r *Reach) namespaces() []string {
	var out []string
	for _, c := range r.Matrix {
		out = append(out, c.To)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *Reach) writeMatrix(w io.Writer) {
	to := r.namespaces()
	fmt.Fprintf(w, "FROM \\ TO\t%s\n", strings.Join(to, "\t"))
	partial, unenforced := false, false
	for at := 0; at < len(r.Matrix); {
		from := r.Matrix[at].From
		cells := map[string]string{}
		for ; at < len(r.Matrix) && r.Matrix[at].From == from; at++ {
			c := r.Matrix[at]
			cells[c.To] = c.text()
			partial = partial || strings.Contains(cells[c.To], " of ")
			unenforced = unenforced || c.Unenforced > 0
		}
		line := []string{from}
		for _, namespace := range to {
			line = append(line, cells[namespace])
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	if partial {
		fmt.Fprintln(w, "2 of 3: two of three pairs of an account and a port are allowed for certain. --from namespace/A --to namespace/B shows each.")
	}
	if unenforced {
		fmt.Fprintln(w, "*: nobody enforces some of these, because no proxy of the workload is connected")
	}
}

// text is the cell of a matrix.
func (c ReachCell) text() string {
	mark := ""
	if c.Unenforced > 0 {
		mark = "*"
	}
	switch sum := c.Allowed + c.Denied + c.Depends; sum {
	case 0:
		return ""
	case c.Allowed:
		return string(CallAllowed) + mark
	case c.Denied:
		return string(CallDenied) + mark
	case c.Depends:
		return string(CallDepends) + mark
	default:
		return fmt.Sprintf("%d of %d%s", c.Allowed, sum, mark)
	}
}

func (r *Reach) writeCells(w io.Writer) {
	fmt.Fprintln(w, "FROM\tTO\tALLOWED\tDENIED\tDEPENDS\tUNENFORCED")
	for _, c := range r.Matrix {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\n", c.From, c.To, c.Allowed, c.Denied, c.Depends, c.Unenforced)
	}
}

// mostNames is how many callers a row of a table names.
const mostNames = 3

func (r *Reach) writeRows(w io.Writer, wide bool) {
	fmt.Fprintln(w, "FROM\tTO\tPORT\tANSWER\tTLS\tENFORCED\tWHY")
	for _, row := range r.Rows {
		names := row.From
		if !wide {
			names = names[:min(len(names), mostNames)]
		}
		from := strings.Join(names, ", ")
		if more := len(row.From) - len(names); more > 0 || row.Callers > len(row.From) && !strings.Contains(from, "/*") {
			from += fmt.Sprintf(" and others (%d in all)", row.Callers)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", from, row.To, row.Port, row.Answer, row.TLS, row.Enforced, row.why(wide))
	}
}

// why says what decides.
func (c Call) why(wide bool) string {
	var parts []string
	if len(c.DependsOn) > 0 {
		parts = append(parts, "on "+strings.Join(c.DependsOn, ", "))
	}
	if c.Reason != "" {
		parts = append(parts, c.Reason)
	}
	var policies []string
	add := func(text string) {
		if text != "" && !slices.Contains(policies, text) {
			policies = append(policies, text)
		}
	}
	for _, by := range c.By {
		text := refs(by.Origins)
		if wide || text == "" {
			text = strings.TrimSpace(text + " " + by.Policy)
		}
		add(text)
	}
	for _, ref := range c.Origins {
		add(ref.String())
	}
	if len(policies) > 0 {
		parts = append(parts, strings.Join(policies, ", "))
	}
	return strings.Join(parts, ": ")
}
