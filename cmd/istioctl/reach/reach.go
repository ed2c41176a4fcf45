package reach

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/offline"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/reach"
)

// options are the values of the flags.
type options struct {
	offline.Flags
	from, to string
	limit    int
	output   string
}

var formats = []string{printer.Table, printer.Wide, printer.YAML, printer.JSON}

// NewCommand returns the command reach.
func NewCommand(s *cli.Session) *cobra.Command {
	var f options
	cmd := &cobra.Command{
		Use:   "reach [--from CALLER] [--to SERVICE]",
		Short: "Show who can reach whom",
		Long: `Show which callers can call which ports of services, by the modes of mutual TLS
(PeerAuthentication, DestinationRule) and the policies about callers (AuthorizationPolicy).

Each call has one of three answers:

  allowed   no policy and no mode of TLS refuses it
  denied    each such call is refused
  depends   it depends on parts of the call that the answer names: the method, the path,
            a header, the token, the address, the instance

CALLER and SERVICE are a host such as reviews or reviews.default, or namespace/NAME.
CALLER may also be account/NAMESPACE/NAME, or outside: a caller outside the mesh, which
sends plain text from an unknown address. Callers with the same answer share a row.
NAMESPACE/* are all accounts of a namespace, and NAMESPACE/? is an account that is not
known. Without --from and --to the command shows a matrix of namespaces.

ENFORCED says if a proxy of the workload enforces the answer. A workload without a
connected proxy accepts everything, whatever policies say. Not a part of the answer are
routes (a rule may send a call elsewhere), requests that are not well-formed, and tokens
that are invalid.

With -f, istioctl asks no server. Files do not say which workloads have a proxy, so each
is taken to have one.`,
		Example: `  # Who can call reviews?
  istioctl reach --to reviews

  # What can the workloads of a namespace call?
  istioctl reach --from namespace/shop

  # The whole mesh, by namespaces
  istioctl reach

  # The same for the files of a folder, before anything is stored
  istioctl reach -f rules/ --to reviews`,
		Args:              cli.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		return f.run(cmd.Context(), s)
	}
	f.Add(cmd)
	cmd.Flags().StringVar(&f.from, "from", "", "callers: a host, namespace/NAME, account/NAMESPACE/NAME, or outside")
	cmd.Flags().StringVar(&f.to, "to", "", "services: a host, or namespace/NAME")
	cmd.Flags().IntVar(&f.limit, "limit", reach.DefaultLimit, "how many rows to show at most")
	printer.AddFlag(cmd, &f.output, formats)
	return cmd
}

func (f *options) check(cmd *cobra.Command) error {
	if _, err := f.asked(); err != nil {
		return err
	}
	if f.limit < 1 || f.limit > reach.MostRows {
		return cli.Usagef("--limit %d: use 1 to %d", f.limit, reach.MostRows)
	}
	if err := printer.Check(f.output, formats); err != nil {
		return err
	}
	return f.Check(cmd)
}

func (f *options) asked() (opts reach.Options, err error) {
	if opts.From, err = reach.ParseSelector(f.from, true); err != nil {
		return opts, cli.Usagef("--from %w", err)
	}
	if opts.To, err = reach.ParseSelector(f.to, false); err != nil {
		return opts, cli.Usagef("--to %w", err)
	}
	opts.Limit = f.limit
	return opts, nil
}

func (f *options) run(ctx context.Context, s *cli.Session) error {
	found, err := f.find(ctx, s)
	if err != nil {
		return err
	}
	if f.output == printer.YAML || f.output == printer.JSON {
		return printer.WriteDocument(s.Stdout, f.output, found)
	}
	return found.Write(s.Stdout, f.output == printer.Wide)
}

// find asks the server, or evaluates the files if there are any.
func (f *options) find(ctx context.Context, s *cli.Session) (*explain.Reach, error) {
	if !f.Offline() {
		c, err := s.ConnectToRead(s.Warn)
		if err != nil {
			return nil, err
		}
		found, err := c.Reach(ctx, f.from, f.to, f.limit)
		if err != nil {
			return nil, s.Fail(ctx, err)
		}
		return found, nil
	}
	opts, err := f.asked()
	if err != nil {
		return nil, err
	}
	snapshot, _, err := f.Snapshot(ctx, s)
	if err != nil {
		return nil, err
	}
	c := compile.NewCompiler()
	c.Advance(snapshot)
	s.ShowProblems(append(snapshot.Problems, c.Problems()...))
	return reach.Find(ctx, c, snapshot, opts)
}
