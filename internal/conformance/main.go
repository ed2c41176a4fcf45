// Command conformance compares our answers to Envoy's REST v1 discovery with those of
// Pilot 0.7.1. Each case of a folder uses the real path: objects in a store, a discovery
// server over it, the HTTP server on loopback, and a GET of the recorded path. The
// folder's README describes its layout and what a comparison may ignore.
//
//	folder.go    a folder of cases, or one case
//	case.go      one case: its input, its request, its verdict
//	expected.go  the expected body
//	registry.go  Pilot's service registry as ServiceEntries
//	legacy.go    reads objects of that time
//	modern.go    converts them to today's form
//	world.go     the control plane of one case
//	compare.go   what may be ignored
//	differ.go    the first difference of two bodies
//	status.go    requests that expect a status or a plain text
//
// It prints a table, ends with "N passed, M failed" and exits with 1 if any failed.
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

// recorded is the default folder of cases. They are not part of the repository.
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

// report runs the folder and reports whether everything passed. The last line counts only
// the cases with a body.
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

// table prints a line for each case and returns the number of failures.
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
