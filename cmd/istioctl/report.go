package main

import (
	"fmt"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/schema"
)

// progressFrom is the number of objects from which progress is drawn.
const progressFrom = 20

// mostAbandoned is the maximum number of unsent objects that are named.
const mostAbandoned = 10

// report prints the results of a command that changes objects: a line for each object,
// progress meanwhile, and a sum at the end.
type report struct {
	session *session
	printer printers.ResourcePrinter // of results; nil for lines
	total   int
	counts  map[outcome]int
	dryRun  string
	broken  error // the first error of printing
}

func (r *report) done(o *schema.Object, what outcome) {
	r.counts[what]++
	r.clear()
	if r.printer != nil {
		if err := printObject(r.session.Stdout, r.printer, o); err != nil {
			r.broken = err
		}
		return
	}
	done, rest, more := strings.Cut(string(what), ":")
	if more {
		rest = ":" + rest
	}
	fmt.Fprintf(r.session.Stdout, "%s %s%s%s%s\n", label(o), done, where(o), rest, r.mark())
}

func (r *report) failure(o *schema.Object, reason string) {
	r.counts[failed]++
	r.clear()
	fmt.Fprintf(r.session.Stderr, "error: %s%s: %s\n", label(o), where(o), reason)
}

// abandon names the objects that were not sent because the server cannot be reached.
// It names only the first few, so that the error before them stays visible.
func (r *report) abandon(rest []step) {
	r.counts[notSent] += len(rest)
	for i, st := range rest {
		if i == mostAbandoned {
			fmt.Fprintf(r.session.Stderr, "… and %d more %s\n", len(rest)-i, notSent)
			return
		}
		fmt.Fprintf(r.session.Stderr, "%s %s%s\n", label(st.object), notSent, where(st.object))
	}
}

// finish prints a sum if there is more than one object. The sum is for people, so it
// stays out of output for programs.
func (r *report) finish() error {
	r.clear()
	var parts []string
	for _, what := range []outcome{created, replaced, unchanged, checked, deleted, deleting, absent, failed, notSent} {
		if n := r.counts[what]; n > 0 {
			done, _, _ := strings.Cut(string(what), ":")
			parts = append(parts, fmt.Sprintf("%d %s", n, done))
		}
	}
	if r.total > 1 {
		out := r.session.Stdout
		if r.printer != nil || r.counts[failed] > 0 {
			out = r.session.Stderr
		}
		fmt.Fprintf(out, "%s%s\n", strings.Join(parts, ", "), r.mark())
	}
	if r.counts[failed] > 0 {
		return errReported
	}
	return r.broken
}

// failed returns the number of objects that were not written.
func (r *report) failed() int { return r.counts[failed] }

func (r *report) progress(i int) {
	if r.total >= progressFrom && r.dryRun != dryRunClient {
		r.session.progress(fmt.Sprintf("%d of %d", i, r.total))
	}
}

func (r *report) clear() {
	if r.total >= progressFrom && r.dryRun != dryRunClient {
		r.session.clearProgress()
	}
}

func (r *report) mark() string {
	switch r.dryRun {
	case dryRunClient:
		return " (dry run)"
	case dryRunServer:
		return " (server dry run)"
	}
	return ""
}
