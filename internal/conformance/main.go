// Command conformance compares what we answer to Envoy's REST v1 discovery
// with what Pilot 0.7.1 answered. Each case of a folder goes the real way:
// objects into a store, a discovery server over it, the HTTP server on
// loopback, GET of the recorded path. The folder's own README tells its layout
// and what a comparer may ignore.
//
//	folder.go    a folder of cases, or one case
//	case.go      one case: its input, its request, its verdict
//	expected.go  the body it wants
//	registry.go  Pilot's service registry as ServiceEntries
//	legacy.go    objects of that time, read
//	modern.go    and as they are written today
//	world.go     the control plane of one case
//	compare.go   what may be ignored
//	differ.go    the first difference of two bodies
//	status.go    requests that want a status or a plain text
//
// It prints a table, ends with "N passed, M failed" and exits 1 when any
// failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
)

// recorded is where the cases are unless another folder is named. They are not
// part of the repository.
const recorded = "../shared/conformance/pilot-v1"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: conformance [FOLDER]") }
	flag.Parse()
	dir := recorded
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	s, err := load(dir, recorded)
	if err != nil {
		fmt.Fprintf(os.Stderr, "conformance: %v\n", err)
		os.Exit(1)
	}
	if !s.report(ctx, os.Stdout) {
		os.Exit(1)
	}
}

// report runs the folder and reports whether everything passed. Only the cases
// with a body are counted in the last line.
func (s *suite) report(ctx context.Context, w io.Writer) bool {
	wrong := 0
	if len(s.statuses) > 0 {
		wrong = table(w, "STATUS CASE", s.statuses, func(c *statusCase) (string, error) { return c.Test, s.checkStatus(ctx, c) })
		fmt.Fprintln(w)
	}
	failed := table(w, "CASE", s.cases, func(c *bodyCase) (string, error) { return c.Name, s.checkBody(ctx, c) })
	fmt.Fprintf(w, "\n%d passed, %d failed\n", len(s.cases)-failed, failed)
	return wrong+failed == 0
}

// table prints a line for each case, and returns how many failed.
func table[C any](w io.Writer, title string, cases []C, check func(C) (string, error)) (failed int) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "%s\tVERDICT\tFIRST DIFFERENCE\n", title)
	for _, c := range cases {
		name, err := check(c)
		verdict, difference := "pass", "-"
		if err != nil {
			verdict, difference = "FAIL", strings.ReplaceAll(err.Error(), "\n", "; ")
			failed++
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", name, verdict, difference)
	}
	tw.Flush()
	return failed
}
