package ca

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/store"
)

// Authorities shows and rotates an authority.
type Authorities interface {
	Authority(context.Context) (*client.Authority, error)
	RotateAuthority(ctx context.Context, step string, force bool) (*client.Authority, error)
}

// NewCommand returns the command ca, with status, rotate and revoke below it.
func NewCommand(s *cli.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "Show the certificate authority of the mesh, rotate its root, and revoke certificates",
		Long: `Show the certificate authority of the mesh, which signs the certificates of workloads
(pilot-api --ca and --proxy-auth), rotate its root, and revoke certificates that it signed.`,
		Example: `  # Which roots do workloads trust, and what comes next?
  istioctl ca status`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("there is no 'istioctl ca %s'", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newStatus(s), newRotate(s), newRevoke(s))
	return cmd
}

func newStatus(s *cli.Session) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the roots of the mesh and the state of their rotation",
		Long: `Show the roots that workloads trust, which of them signs, and until when certificates
count that it signed. The command says which step of a rotation comes next, and names the
proxies and certificates that it would cut off.`,
		Example: `  # Can the rotation go on?
  istioctl ca status`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := printer.Check(output, formats); err != nil {
				return err
			}
			c, err := s.Connect(s.Warn)
			if err != nil {
				return err
			}
			found, err := c.Authority(cmd.Context())
			if err != nil {
				return s.Fail(cmd.Context(), err)
			}
			return show(s.Stdout, output, found)
		},
	}
	printer.AddFlag(cmd, &output, formats)
	return cmd
}

var formats = []string{printer.Table, printer.YAML, printer.JSON}

// steps are the steps of a rotation.
var steps = []string{"add", "sign", "drop", "cancel"}

// rotateOptions are the values of the flags of ca rotate.
type rotateOptions struct {
	force bool
	wait  time.Duration
}

func newRotate(s *cli.Session) *cobra.Command {
	var flags rotateOptions
	cmd := &cobra.Command{
		Use:   "rotate (add | sign | drop | cancel)",
		Short: "Do a step of the rotation of the root",
		Long: `Do a step of the rotation of the root that the servers made (pilot-api --ca self, with --proxy-auth):

  add     makes a new root. Workloads trust it beside the old one.
  sign    makes the new root sign. All proxies must trust it.
  drop    ends the trust in the old root. All certificates that it signed must have ended.
  cancel  drops the new root, or makes the old root sign again.

The server refuses a step that would cut somebody off, and names who that is: proxies that
have not acknowledged the new root or have lost their connection, replicas that do not
answer, and certificates that still count. With --wait the command tries again until the
step is possible. With --force the server does the step all the same.

A workload that takes its roots from the answers to its requests for certificates, and not
from the server's secret ROOTCA, has the new root after its next renewal. The server cannot
see that: let one life of certificates (--ca-ttl) pass between add and sign if there are such
workloads.`,
		Example: `  # A rotation from the beginning to the end
  istioctl ca rotate add
  istioctl ca rotate sign --wait 5m
  istioctl ca rotate drop --wait 25h`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(steps, args[0]) {
				return cli.Usagef("say which step: istioctl ca rotate %s", strings.Join(steps, ", "))
			}
			return nil
		},
		ValidArgs: steps,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if flags.wait < 0 {
			return cli.Usagef("--wait %s: must not be negative", flags.wait)
		}
		c, err := s.Connect(s.Warn)
		if err != nil {
			return err
		}
		return flags.run(cmd.Context(), s, c, args[0])
	}
	cmd.Flags().BoolVar(&flags.force, "force", false, "do the step even if it cuts somebody off")
	cmd.Flags().DurationVar(&flags.wait, "wait", 0, "how long to wait until the step cuts nobody off")
	return cmd
}

// pace is the time between two tries of a step.
const pace = time.Second

// run does a step.
func (o rotateOptions) run(ctx context.Context, s *cli.Session, c Authorities, step string) error {
	for end := time.Now().Add(o.wait); ; {
		found, err := c.RotateAuthority(ctx, step, o.force)
		switch {
		case err == nil:
			fmt.Fprintf(s.Stdout, "%s: done\n", step)
			return show(s.Stdout, "", found)
		case !errors.Is(err, store.ErrConflict) || !time.Now().Before(end):
			return s.Fail(ctx, err)
		}
		// Only a step that is blocked becomes possible by itself.
		if now, err := c.Authority(ctx); err != nil || step != "cancel" && now.Next != step {
			return s.Fail(ctx, errors.Join(fmt.Errorf("the step %s is not the next one", step), err))
		}
		select {
		case <-ctx.Done():
			return s.Fail(ctx, ctx.Err())
		case <-time.After(pace):
		}
	}
}

// show prints the state of an authority.
func show(w io.Writer, output string, a *client.Authority) error {
	if output != "" && output != printer.Table {
		return printer.WriteDocument(w, output, a)
	}
	table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "ROOT\tSIGNS\tENDS\tCERTIFICATES UNTIL\tSUBJECT")
	for _, root := range a.Authorities {
		signs, last := "no", "unknown"
		if root.Signs {
			signs = "yes"
		}
		if !root.LastEnd.IsZero() {
			last = root.LastEnd.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", root.Name, signs, root.NotAfter.UTC().Format(time.RFC3339), last, root.Subject)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d proxies have acknowledged these roots\n", a.Trusting, a.Proxies)
	if a.Revoked > 0 {
		fmt.Fprintf(&text, "revoked certificates: %d\n", a.Revoked)
	}
	if a.Lack != "" {
		fmt.Fprintf(&text, "this server cannot sign: %s\n", a.Lack)
	}
	switch {
	case a.Next == "":
	case len(a.Blocked) == 0:
		fmt.Fprintf(&text, "next: istioctl ca rotate %s\n", a.Next)
	default:
		fmt.Fprintf(&text, "next: istioctl ca rotate %s, which would cut off:\n", a.Next)
		for _, reason := range a.Blocked {
			fmt.Fprintf(&text, "- %s\n", reason)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
