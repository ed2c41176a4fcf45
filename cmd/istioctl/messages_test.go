package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/golden"
)

// The page of messages and what it is made of: for each code a text, and files that
// have it and files that do not.
const (
	messagesPage = "../../docs/messages.md"
	messagesDir  = "../../testdata/messages"
)

// withoutExample are codes that files alone do not show: they need a proxy, a time, or a
// mistake of ours.
var withoutExample = []diag.Code{diag.CertificateExpiring, diag.CertificateExpiringSoon, diag.LostInV3, diag.LostInGRPC, diag.Contradicts, diag.Refused, diag.NotPublished}

// example of a message, perhaps under mesh settings of its own.
type example struct{ text, mesh, bad, good string }

func examples(t *testing.T) map[diag.Code]example {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(messagesDir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	of := map[diag.Code]example{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code := diag.Code(strings.TrimSuffix(filepath.Base(file), ".txtar"))
		one, names := example{text: string(archive.Comment)}, ""
		for _, f := range archive.Files {
			names += f.Name + " "
			switch f.Name {
			case "mesh.yaml":
				one.mesh = string(f.Data)
			case "bad.yaml":
				one.bad = string(f.Data)
			case "good.yaml":
				one.good = string(f.Data)
			}
		}
		if _, known := code.Message(); !known || strings.TrimPrefix(names, "mesh.yaml ") != "bad.yaml good.yaml " {
			t.Fatalf("%s: want a code's text, perhaps mesh.yaml, bad.yaml and good.yaml", file)
		}
		of[code] = one
	}
	return of
}

// TestMessages: of each code the bad example has it, and the good one is taken and
// has it not.
func TestMessages(t *testing.T) {
	of := examples(t)
	for _, m := range diag.Messages {
		one, ok := of[m.Code]
		if slices.Contains(withoutExample, m.Code) == ok {
			t.Errorf("%s %s: has an example: %v", m.Code, m.Name, ok)
		}
		if !ok {
			continue
		}
		if found := analyzed(t, one.mesh, one.bad); !has(found, m.Code) {
			t.Errorf("%s %s: the bad example has only\n%s", m.Code, m.Name, lines(found))
		}
		if found := analyzed(t, one.mesh, one.good); has(found, m.Code) || len(found.Errors()) > 0 {
			t.Errorf("%s %s: the good example has\n%s", m.Code, m.Name, lines(found))
		}
	}
}

func analyzed(t *testing.T, settings, text string) diag.List {
	t.Helper()
	var out, errs bytes.Buffer
	c := &cli.Program{Stdin: strings.NewReader(text), Stdout: &out, Stderr: &errs, Getenv: clitest.Env("http://127.0.0.1:1")}
	file := filepath.Join(t.TempDir(), "mesh.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	code := root.Run(t.Context(), c, []string{"analyze", "--v1", "-f", "-", "--mesh-config", file, "-o", "json", "--fail-on", "warning"})
	var found struct{ Problems diag.List }
	if err := json.Unmarshal(out.Bytes(), &found); err != nil || (code == cli.ExitDone) != (len(found.Problems) == 0) {
		t.Fatalf("exit %d: %v\n%s%s", code, err, &out, &errs)
	}
	return found.Problems
}

func has(list diag.List, code diag.Code) bool {
	return slices.ContainsFunc(list, func(p diag.Problem) bool { return p.Code == code })
}

func lines(list diag.List) string {
	var out strings.Builder
	for _, p := range list {
		fmt.Fprintln(&out, p.Coded())
	}
	return out.String()
}

// TestMessagesPage keeps docs/messages.md as the code and the examples say. Run with
// -update after a change.
func TestMessagesPage(t *testing.T) {
	of := examples(t)
	var page strings.Builder
	page.WriteString("# Messages\n\nThis page lists, by code, every message of `istioctl analyze`, `problems` and `describe`, of `Warning` headers and of the conditions of objects " +
		"([025](decisions/025-message-codes.md)). A test runs each example.\n\n| code | name | |\n|---|---|---|\n")
	for _, m := range diag.Messages {
		fmt.Fprintf(&page, "| [%s](#%s) | %s | %s |\n", m.Code, strings.ToLower(string(m.Code)), m.Name, m.About)
	}
	for _, m := range diag.Messages {
		fmt.Fprintf(&page, "\n## %s\n\n**%s.** %s\n", m.Code, m.Name, m.About)
		if one, ok := of[m.Code]; ok {
			fmt.Fprintf(&page, "\n%s\n", one.text)
			if one.mesh != "" {
				fmt.Fprintf(&page, "Mesh settings:\n\n```yaml\n%s```\n\n", one.mesh)
			}
			fmt.Fprintf(&page, "With it:\n\n```yaml\n%s```\n\nWithout:\n\n```yaml\n%s```\n", one.bad, one.good)
		}
	}
	golden.Page(t, messagesPage, page.String())
}
