package writes

import (
	"fmt"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/schema"
)

// progressFrom is the number of objects from which progress is drawn.
const progressFrom = 20

// mostAbandoned is the maximum number of unsent objects that are named.
const mostAbandoned = 10

// Report prints the results of a command that changes objects: the progress, a line for
// each object, and a total at the end.
type Report struct {
	session *cli.Session
	printer printers.ResourcePrinter // of results; nil for lines
	Total   int
	counts  map[Outcome]int
	dryRun  string
	broken  error // the first error of printing
}

// Done reports the outcome for an object.
func (r *Report) Done(o *schema.Object, what Outcome) {
	r.counts[what]++
	r.clear()
	if r.printer != nil {
		if err := printer.PrintObject(r.session.Stdout, r.printer, o); err != nil {
			r.broken = err
		}
		return
	}
	done, rest, more := strings.Cut(string(what), ":")
	if more {
		rest = ":" + rest
	}
	fmt.Fprintf(r.session.Stdout, "%s %s%s%s%s\n", printer.Label(o), done, printer.Where(o), rest, r.mark())
}

// Failure reports why an object was not changed.
func (r *Report) Failure(o *schema.Object, reason string) {
	r.counts[Failed]++
	r.clear()
	fmt.Fprintf(r.session.Stderr, "error: %s%s: %s\n", printer.Label(o), printer.Where(o), reason)
}

// abandon names the objects that were not sent because the server cannot be reached.
// It names only the first few, so that the error before them stays visible.
func (r *Report) abandon(rest []Step) {
	r.counts[notSent] += len(rest)
	for i, st := range rest {
		if i == mostAbandoned {
			fmt.Fprintf(r.session.Stderr, "… and %d more %s\n", len(rest)-i, notSent)
			return
		}
		fmt.Fprintf(r.session.Stderr, "%s %s%s\n", printer.Label(st.Object), notSent, printer.Where(st.Object))
	}
}

// Finish prints the total if there is more than one object. The total is for people, so
// output for programs omits it.
func (r *Report) Finish() error {
	r.clear()
	var parts []string
	for _, what := range []Outcome{Created, Replaced, Unchanged, Checked, Deleted, Deleting, Absent, Failed, notSent} {
		if n := r.counts[what]; n > 0 {
			done, _, _ := strings.Cut(string(what), ":")
			parts = append(parts, fmt.Sprintf("%d %s", n, done))
		}
	}
	if r.Total > 1 {
		out := r.session.Stdout
		if r.printer != nil || r.counts[Failed] > 0 {
			out = r.session.Stderr
		}
		fmt.Fprintf(out, "%s%s\n", strings.Join(parts, ", "), r.mark())
	}
	if r.counts[Failed] > 0 {
		return cli.ErrReported
	}
	return r.broken
}

// Failed returns the number of objects that were not written.
func (r *Report) Failed() int { return r.counts[Failed] }

// Progress draws how many objects are done.
func (r *Report) Progress(i int) {
	if r.Total >= progressFrom && r.dryRun != DryRunClient {
		r.session.Progress(fmt.Sprintf("%d of %d", i, r.Total))
	}
}

func (r *Report) clear() {
	if r.Total >= progressFrom && r.dryRun != DryRunClient {
		r.session.ClearProgress()
	}
}

func (r *Report) mark() string {
	switch r.dryRun {
	case DryRunClient:
		return " (dry run)"
	case DryRunServer:
		return " (server dry run)"
	}
	return ""
}
