package history

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/past"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/schema"
)

var historyFormats = []string{printer.Table, printer.Wide, printer.YAML, printer.JSON}

// Options has the flags of history.
type Options struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (past.Historian, error)

	output string
}

// NewCommand returns the command history.
func NewCommand(s *cli.Session) *cobra.Command {
	flags := Options{Connect: func(warn func(string)) (past.Historian, error) { return s.ConnectToRead(warn) }}
	cmd := &cobra.Command{
		Use:   "history (KIND NAME | KIND/NAME)",
		Short: "Show the versions of an object, and their authors",
		Long: `Show the versions of an object that the server still has, the newest first: the
revision and time at which each began, the user and program that made it, and the
fields that changed. A deleted object has a history too. TRANSACTION is the end of an
ID that all changes of one transaction share. -o wide shows the whole ID and all
changed fields; -o yaml and -o json include each version.

WHO is the user whose identity the server verified. If the server asks for no proof of
users, it is the user that the request states, which nobody has verified unless a proxy
in front of the server does: istioctl states the user of the operating system, or
ISTIOCTL_USER. The server keeps the newest 10 changes of an object
(pilot-api --history).`,
		Example: `  # Who changed this object, and which fields?
  istioctl history virtualservice reviews

  # Show each version in full; this works for deleted objects too
  istioctl history vs/reviews -o yaml

  # See an earlier version, and return to it
  istioctl get virtualservice reviews --revision 1204 -o yaml
  istioctl rollback virtualservice reviews --to 1204`,
		ValidArgsFunction: targets.CompleteName(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := printer.Check(flags.output, historyFormats); err != nil {
			return err
		}
		key, err := targets.One("history", s.Namespace, args)
		if err != nil {
			return err
		}
		return flags.Run(cmd.Context(), s, key)
	}
	printer.AddFlag(cmd, &flags.output, historyFormats)
	return cmd
}

// Run prints the history of an object.
func (o Options) Run(ctx context.Context, s *cli.Session, key schema.Key) error {
	c, err := o.Connect(s.Warn)
	if err != nil {
		return err
	}
	versions, err := past.Versions(ctx, s, c, key)
	if err != nil {
		return err
	}
	entries, err := past.Entries(versions)
	if err != nil {
		return err
	}
	if !printer.IsTable(o.output) {
		return printer.WriteDocument(s.Stdout, o.output, struct {
			APIVersion string       `json:"apiVersion"`
			Kind       string       `json:"kind"`
			Items      []past.Entry `json:"items"`
		}{"registry.istio.io/v1", "History", entries})
	}
	return showHistory(s, entries, o.output == printer.Wide)
}

func showHistory(s *cli.Session, entries []past.Entry, wide bool) error {
	tab := printers.GetNewTabWriter(s.Stdout)
	fmt.Fprintln(tab, "REVISION\tGENERATION\tWHEN\tVERB\tWHO\tPROGRAM\tTRANSACTION\tCHANGED")
	for _, e := range entries {
		generation := printer.None
		if e.Object != nil {
			generation = strconv.FormatInt(e.Generation, 10)
		}
		fmt.Fprintf(tab, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Revision, generation, e.WhenText(), e.VerbText(), e.Who(), e.UserAgentText(), e.TransactionText(wide), e.ChangedText(wide))
	}
	return tab.Flush()
}
