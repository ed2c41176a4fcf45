package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/internal/golden"
)

const docsDir = "../../docs/cli"

func commands() []*cobra.Command {
	root := root.New(&cli.Program{Version: version, Stdin: bytes.NewReader(nil), Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }})
	return append([]*cobra.Command{root}, root.Commands()...)
}

// TestDocs keeps docs/cli as the code says. Run with -update after a change.
func TestDocs(t *testing.T) {
	dir := t.TempDir()
	if err := doc.GenMarkdownTree(commands()[0], dir); err != nil {
		t.Fatal(err)
	}
	said := pages(t, dir)
	for name, text := range said {
		golden.Page(t, filepath.Join(docsDir, name), text)
	}
	for name := range pages(t, docsDir) {
		if said[name] == "" {
			t.Errorf("there is no command for %s in %s", name, docsDir)
		}
	}
}

func pages(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

// TestHelp checks what every command owes to the person who asks for help.
func TestHelp(t *testing.T) {
	for _, cmd := range commands() {
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
