package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/internal/golden"
)

// TestFlagsPage keeps docs/reference/pilot-api.md as the code says. Run with
// -update after a change.
func TestFlagsPage(t *testing.T) {
	page := "# Flags of pilot-api\n\nEvery flag can also be given in the environment; the command line wins.\n\n" +
		"| flag | in the environment | default | meaning |\n|---|---|---|---|\n"
	var o options
	flags := pflag.NewFlagSet("pilot-api", pflag.ContinueOnError)
	o.register(flags)
	page += rows(flags)
	for _, cmd := range everyCommand(newCommand(io.Discard, io.Discard).Commands()) {
		page += fmt.Sprintf("\n## %s\n\n%s\n\n| flag | in the environment | default | meaning |\n|---|---|---|---|\n%s",
			cmd.CommandPath(), cmd.Long, rows(cmd.LocalFlags()))
	}
	golden.Page(t, "../../docs/reference/pilot-api.md", page)
}

func rows(flags *pflag.FlagSet) (rows string) {
	flags.VisitAll(func(f *pflag.Flag) {
		env := "PILOT_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		rows += fmt.Sprintf("| `--%s` | `%s` | %s | %s |\n", f.Name, env, strings.Trim(f.DefValue, "[]"), f.Usage)
	})
	return rows
}

// everyCommand is those that do something.
func everyCommand(list []*cobra.Command) (all []*cobra.Command) {
	for _, cmd := range list {
		if cmd.HasSubCommands() {
			all = append(all, everyCommand(cmd.Commands())...)
			continue
		}
		all = append(all, cmd)
	}
	return all
}

var metricHelp = regexp.MustCompile(`(?m)^# HELP (pilot_[a-z0-9_]+) `)

// Somebody who looks at a graph at night finds each metric explained.
func TestMetricsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- Main(ctx, []string{"--listen", addr, "--grpc-listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--log-level", "error"}, io.Discard, os.Stderr)
	}()
	defer func() {
		stop()
		<-done
	}()
	waitReady(t, addr)
	metrics := get(t, "http://"+addr+"/metrics")
	names := metricHelp.FindAllStringSubmatch(metrics, -1)
	if len(names) < 10 {
		t.Errorf("only %d metrics in\n%s", len(names), metrics)
	}
	for _, name := range names {
		if !strings.Contains(string(page), "`"+name[1]+"`") {
			t.Errorf("docs/operations.md says nothing about %s", name[1])
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
