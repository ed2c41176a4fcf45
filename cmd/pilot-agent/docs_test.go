package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/internal/golden"
)

// TestFlagsPage keeps docs/reference/pilot-agent.md as the code says. Run with -update after
// a change.
func TestFlagsPage(t *testing.T) {
	page := "# Commands of pilot-agent\n\nThe command line has precedence over the environment.\n"
	for _, cmd := range everyCommand(newRoot()) {
		page += fmt.Sprintf("\n## %s\n\n%s\n\n```\n%s\n```\n", cmd.CommandPath(), cmd.Long, strings.TrimRight(cmd.Example, "\n"))
		if rows := rows(cmd.LocalFlags()); rows != "" {
			page += "\n| flag | in the environment | default | meaning |\n|---|---|---|---|\n" + rows
		}
	}
	golden.Page(t, "../../docs/reference/pilot-agent.md", page)
}

func rows(flags *pflag.FlagSet) (rows string) {
	flags.VisitAll(func(f *pflag.Flag) {
		name, env, def := "`--"+f.Name+"`", "", ""
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		if variable(f) != "" {
			env = "`" + variable(f) + "`"
		}
		if def = strings.Trim(f.DefValue, "[]"); def != "" {
			def = "`" + def + "`"
		}
		rows += fmt.Sprintf("| %s | %s | %s | %s |\n", name, env, def, f.Usage)
	})
	return rows
}

// everyCommand returns a command and all below it.
func everyCommand(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		all = append(all, everyCommand(below)...)
	}
	return all
}

// TestHelp checks what every command owes to the person who asks for help.
func TestHelp(t *testing.T) {
	for _, cmd := range everyCommand(newRoot()) {
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s: short text, long text or examples are missing", cmd.CommandPath())
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			names = append(names, f.Name)
			if f.Usage == "" {
				t.Errorf("%s: --%s has no text", cmd.CommandPath(), f.Name)
			}
		})
		if !slices.IsSorted(names) {
			t.Errorf("%s: flags are not sorted: %v", cmd.CommandPath(), names)
		}
	}
}

// TestLean keeps what only the server needs out of the agent: it is copied to many machines.
func TestLean(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	heavy := regexp.MustCompile(`^(go\.etcd\.io|github\.com/envoyproxy|google\.golang\.org/grpc|github\.com/prometheus|k8s\.io|istio\.io|github\.com/pilot-api/pilot-api/(compile|store|server|schema|discovery|mesh|ir))(/|$)`)
	for _, pkg := range strings.Fields(string(out)) {
		if heavy.MatchString(pkg) {
			t.Errorf("pilot-agent depends on %s", pkg)
		}
	}
}
