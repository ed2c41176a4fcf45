package analyze

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/offline"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/diag"
)

// Exit codes of analyze besides cli.ExitDone.
const (
	exitProblems    = 1
	exitNotAnalyzed = 2
)

// Analyst reports the problems of the server's objects, and those that other objects would
// cause.
type Analyst interface {
	Reporter
	Preview(ctx context.Context, text []byte, namespace string) (*client.Preview, error)
	PreviewInV1(ctx context.Context, text []byte, namespace string) (*client.Preview, error)
}

// Options has the flags of analyze.
type Options struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (Analyst, error)

	offline.Flags
	live   bool
	v1     bool
	codes  bool
	output string
	failOn string
}

// NewCommand returns the command analyze.
func NewCommand(s *cli.Session) *cobra.Command {
	f := Options{Connect: func(warn func(string)) (Analyst, error) { return s.ConnectToRead(warn) }}
	cmd := &cobra.Command{
		Use:   "analyze [-f FILE]...",
		Short: "Check the objects against each other",
		Long: `Check the objects against each other. This finds hosts, ports, subsets and gateways
that do not exist, rules that never match or hide each other, labels that no
instance has, hosts that two objects declare, and TLS settings that cannot be met.
Each message has a stable code. --codes lists the codes, and docs/messages.md has a
page with examples.

Without -f, istioctl checks the objects of the server, and includes the refusals of
its proxies. -n selects those of one namespace. With -f it asks no server: it checks
only the objects of the files, and also reports objects that are not valid. With -f and
--live the server checks its objects with those of the files in their place, and stores
nothing.

With --v1 it also reports the parts that Envoys of the v1 API cannot express, for
each namespace that has objects and for each Gateway.

The exit code is 0 if every object is honoured, 1 if an object is refused or not
honoured as written, and 2 if the check was not possible. With --fail-on warning it
is 1 for advice too: messages that --codes marks, of objects that are honoured.`,
		Example: `  # Is anything wrong in the mesh?
  istioctl analyze

  # Check files by themselves, and together with the objects of the server
  istioctl analyze -f rules/
  istioctl analyze --live -f rules/

  # Which parts would Envoys of the v1 API lose, after these files are applied?
  istioctl analyze --v1
  istioctl analyze --v1 --live -f rules/

  # In a pipeline that fails for advice too
  istioctl analyze -f rules/ --fail-on warning -o json`,
		Args: manifest.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		err := f.check(cmd)
		if err == nil {
			err = f.Run(cmd.Context(), s)
		}
		if err == nil || errors.Is(err, cli.ErrReported) {
			return err
		}
		return cli.ExitWith(err, exitNotAnalyzed)
	}
	f.Add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.live, "live", false, "lay the files over the objects of the server")
	flags.BoolVar(&f.v1, "v1", false, "also report what Envoys of the v1 API would lose")
	flags.BoolVar(&f.codes, "codes", false, "list the codes of messages, and check no objects")
	flags.StringVar(&f.failOn, "fail-on", string(diag.Error), "which messages make the command fail: error (something is not honoured) or warning (advice too)")
	printer.AddFlag(cmd, &f.output, problemFormats)
	return cmd
}

func (f *Options) check(cmd *cobra.Command) error {
	if err := printer.Check(f.output, problemFormats); err != nil {
		return err
	}
	if f.failOn != string(diag.Error) && f.failOn != string(diag.Warning) {
		return cli.Usagef("--fail-on %q: want warning or error", f.failOn)
	}
	alone := f.Offline() && !f.live
	for _, name := range []string{"mesh-config", "domain"} {
		if cmd.Flags().Changed(name) && !alone {
			return cli.Usagef("--%s goes with -f and without --live: a server has its own", name)
		}
	}
	if f.live && !f.Offline() {
		return cli.Usagef("--live goes with -f: without files the server's objects are looked at")
	}
	return nil
}

// Run prints the problems. Its error has the exit code.
func (f *Options) Run(ctx context.Context, s *cli.Session) error {
	if f.codes {
		return showCodes(s, f.output)
	}
	found, err := f.analyze(ctx, s)
	if err != nil {
		return err
	}
	if found.NotLookedAt > 0 {
		s.Warn("not looked at for what the v1 API loses: " + cli.Count(found.NotLookedAt, "more configuration"))
	}
	if s.NamespaceGiven {
		found.Problems = slices.DeleteFunc(found.Problems, func(p diag.Problem) bool { return p.Object.Namespace != s.Namespace })
	}
	slices.SortStableFunc(found.Problems, func(a, b diag.Problem) int {
		return cmp.Or(strings.Compare(a.Object.String(), b.Object.String()), strings.Compare(a.Field, b.Field))
	})
	if err := showFound(s, found, f.output); err != nil {
		return err
	}
	grave := found.Problems
	if f.failOn == string(diag.Error) {
		grave = grave.Unhonoured()
	}
	if len(grave) > 0 {
		return cli.ExitWith(cli.ErrReported, exitProblems)
	}
	return nil
}

func (f *Options) analyze(ctx context.Context, s *cli.Session) (*client.Problems, error) {
	switch {
	case !f.Offline():
		return f.analyzeServer(ctx, s)
	case f.live:
		return f.analyzeOver(ctx, s)
	}
	return f.analyzeFiles(ctx, s)
}

func (f *Options) analyzeServer(ctx context.Context, s *cli.Session) (*client.Problems, error) {
	c, err := f.Connect(s.Warn)
	if err != nil {
		return nil, err
	}
	found, err := c.Problems(ctx, client.ProblemsOptions{Namespace: givenNamespace(s), InV1: f.v1})
	return found, s.Fail(ctx, err)
}

// preview returns the problems that the server would report with the objects in text.
func (f *Options) preview(ctx context.Context, s *cli.Session, c Analyst, text []byte) (*client.Preview, error) {
	if f.v1 {
		return c.PreviewInV1(ctx, text, s.Namespace)
	}
	return c.Preview(ctx, text, s.Namespace)
}

// analyzeOver returns the problems of the server's objects combined with those of the
// files.
func (f *Options) analyzeOver(ctx context.Context, s *cli.Session) (*client.Problems, error) {
	docs, err := manifest.Documents(ctx, s, f.Files)
	if err != nil {
		return nil, err
	}
	list, own, err := manifest.Check(ctx, s, docs)
	if err != nil {
		return nil, err
	}
	own = append(own, manifest.Repeated(diag.Error)(list)...)
	if len(list) == 0 && len(own) == 0 {
		return nil, f.Files.NoObjects()
	}
	c, err := f.Connect(s.Warn)
	if err != nil {
		return nil, err
	}
	found, err := c.Problems(ctx, client.ProblemsOptions{InV1: f.v1})
	if err != nil {
		return nil, s.Fail(ctx, err)
	}
	would := &client.Preview{} // of no object, if the files have none that is valid
	if len(list) > 0 {
		would, err = f.preview(ctx, s, c, manifest.Joined(firstOfEach(list)))
	}
	if err != nil {
		return nil, s.Fail(ctx, err)
	}
	solved := map[diag.Problem]bool{}
	for _, p := range would.Solved {
		solved[p] = true
	}
	found.Problems = slices.DeleteFunc(found.Problems, func(p diag.Problem) bool { return solved[p] })
	found.Problems = located(slices.Concat(own, found.Problems, would.Problems), list)
	found.NotLookedAt = max(found.NotLookedAt, would.NotLookedAtInV1)
	return found, nil
}

// located returns each problem once, with the position of its object in the files.
func located(problems diag.List, files []manifest.Manifest) diag.List {
	at := map[diag.Ref]*diag.Position{}
	for _, m := range files {
		at[m.Key().Ref()] = cmp.Or(at[m.Key().Ref()], m.Place())
	}
	known := map[diag.Problem]bool{}
	var out diag.List
	for _, p := range problems {
		bare := p
		if p.Object != (diag.Ref{}) {
			bare.Position = nil
		}
		if known[bare] {
			continue
		}
		known[bare] = true
		p.Position = cmp.Or(p.Position, at[p.Object])
		out = append(out, p)
	}
	return out
}

// firstOfEach returns the first manifest for each object.
func firstOfEach(list []manifest.Manifest) []manifest.Manifest {
	known := map[diag.Ref]bool{}
	return slices.DeleteFunc(slices.Clone(list), func(m manifest.Manifest) bool {
		ref := m.Key().Ref()
		before := known[ref]
		known[ref] = true
		return before
	})
}

func showCodes(s *cli.Session, output string) error {
	if !printer.IsTable(output) {
		return printer.WriteDocument(s.Stdout, output, diag.Messages)
	}
	tab := printers.GetNewTabWriter(s.Stdout)
	fmt.Fprintln(tab, "CODE\tNAME\tHONOURED\tABOUT")
	for _, m := range diag.Messages {
		honoured := "no"
		if m.Advice {
			honoured = "yes"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", m.Code, m.Name, honoured, m.About)
	}
	return tab.Flush()
}
