package proxy

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/proxies"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/internal/terminal"
)

var proxyFormats = []string{printer.Table, printer.Wide, printer.YAML, printer.JSON}

// StatusOptions are the values of the flags of proxy-status.
type StatusOptions struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (Inventory, error)

	output string
	watch  bool
}

// NewStatusCommand returns the command proxy-status.
func NewStatusCommand(s *cli.Session) *cobra.Command {
	flags := StatusOptions{Connect: func(warn func(string)) (Inventory, error) { return s.ConnectToRead(warn) }}
	cmd := &cobra.Command{
		Use:     "proxy-status [PROXY]",
		Aliases: []string{"ps"},
		Short:   "Show the proxies and the state of their configuration",
		Long: `Show the proxies that are connected to any replica of the server or polled it lately,
and the sync state of each type of their configuration:

  SYNCED    the proxy has acknowledged the newest configuration
  SENT      the newest configuration was sent
  STALE     newer configuration waits for other resources that it needs
  REJECTED  the proxy refuses the configuration; -o wide shows its message
  FETCHED   the proxy has fetched the newest configuration, and cannot say
            whether it uses it

A proxy that was connected and is not now is DISCONNECTED. REVISION is then what it ran
when it was seen last, and AGE how long ago that is. The server keeps such proxies for
a day (pilot-api --keep-disconnected).

If you may see only the proxies of some namespaces, these are shown, and a warning says
that there may be others.

REVISION is the revision of the store that the proxy runs. In brackets, it is the one
that a proxy over v1 has fetched. PROXY is a node ID, or a part of node IDs.`,
		Example: `  # The state of all proxies
  istioctl proxy-status

  # Why does a proxy refuse its routes?
  istioctl proxy-status productpage-v1 -o wide

  # Follow a change to the proxies
  istioctl proxy-status -w`,
		Args: cli.AtMostOneArg,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return flags.Run(cmd.Context(), s, strings.Join(args, ""))
	}
	printer.AddFlag(cmd, &flags.output, proxyFormats)
	cmd.Flags().BoolVarP(&flags.watch, "watch", "w", false, "show the proxies again after each change, until interrupted")
	return cmd
}

// Run shows the proxies whose node contains part.
func (o StatusOptions) Run(ctx context.Context, s *cli.Session, part string) error {
	if err := printer.Check(o.output, proxyFormats); err != nil {
		return err
	}
	c, err := o.Connect(s.Warn)
	if err != nil {
		return err
	}
	q := proxyQuery{c, part, o.output}
	if o.watch {
		return s.Fail(ctx, followProxies(ctx, s, q))
	}
	all, err := q.there(ctx)
	if err != nil {
		return s.Fail(ctx, err)
	}
	return printProxies(s, all, o.output)
}

// proxyQuery asks for the proxies whose node contains a given text.
type proxyQuery struct {
	Inventory
	part, output string
}

func (q proxyQuery) ask(ctx context.Context) ([]client.Proxy, error) {
	all, err := q.AllProxies(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p client.Proxy) bool { return !strings.Contains(p.Node, q.part) }), nil
}

// there is like ask, but fails if there is no proxy.
func (q proxyQuery) there(ctx context.Context) ([]client.Proxy, error) {
	all, err := q.ask(ctx)
	if err == nil && q.part != "" && len(all) == 0 {
		err = fmt.Errorf("no proxy is connected whose node has %q in it", q.part)
	}
	return all, err
}

// followProxies shows the proxies again after each change. It looks once a second. The
// first answer shows whether there is a server at all; later failures are retried.
func followProxies(ctx context.Context, s *cli.Session, q proxyQuery) error {
	shown, err := q.there(ctx)
	if err == nil {
		err = printProxies(s, shown, q.output)
	}
	if err != nil {
		return err
	}
	link := cli.NewLink(s, nil)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		all, err := q.ask(ctx)
		switch {
		case err != nil:
			if final := link.Gone(ctx, err); final != nil {
				return final
			}
			continue
		case reflect.DeepEqual(all, shown):
			link.Back()
			continue
		}
		link.Back()
		fmt.Fprintln(s.Stdout)
		if err := printProxies(s, all, q.output); err != nil {
			return err
		}
		shown = all
	}
}

func printProxies(s *cli.Session, all []client.Proxy, output string) error {
	switch {
	case !printer.IsTable(output) && output != printer.Wide:
		return printer.WriteDocument(s.Stdout, output, all)
	case len(all) == 0:
		fmt.Fprintln(s.Stderr, "No proxies are connected.")
		return nil
	}
	return printProxyTable(s.Stdout, all, output == printer.Wide)
}

func printProxyTable(out io.Writer, all []client.Proxy, wide bool) error {
	tab := printers.GetNewTabWriter(out)
	head := []string{"PROXY", "ROLE", "TRANSPORT", "ENVOY"}
	for _, name := range explain.Types {
		head = append(head, strings.ToUpper(name))
	}
	head = append(head, "REVISION", "AGE")
	if wide {
		head = append(head, "REPLICA", "ADDRESS", "NODE", "REFUSES")
	}
	fmt.Fprintln(tab, strings.Join(head, "\t"))
	for _, p := range all {
		row := []string{proxies.ShortNode(p.Node), p.Role, p.Transport, cmp.Or(p.EnvoyVersion, "-")}
		var words []string
		age := time.Since(p.ConnectedSince)
		if p.State == client.Disconnected && p.LastSeen != nil {
			p.Types = map[string]client.ProxyType{explain.Types[0]: {State: p.State}}
			age = time.Since(*p.LastSeen)
			if p.Lost {
				words = append(words, "lost the connection without ending it")
			}
		}
		for _, name := range explain.Types {
			row = append(row, cmp.Or(p.Types[name].State, "-"))
			if e := p.Types[name].Error; e != "" {
				words = append(words, name+": "+e)
			}
		}
		row = append(row, revisionOf(p), duration.HumanDuration(age))
		if wide {
			row = append(row, cmp.Or(p.Replica, "-"), cmp.Or(p.Address, "-"), p.Node, cli.OneLine(strings.Join(words, "; ")))
		}
		for i := range row {
			row[i] = terminal.Line(row[i])
		}
		fmt.Fprintln(tab, strings.Join(row, "\t"))
	}
	return tab.Flush()
}

// revisionOf is the revision that a proxy runs, in brackets one that it has only fetched.
func revisionOf(p client.Proxy) string {
	if p.FetchedRevision > 0 {
		return fmt.Sprintf("(%d)", p.FetchedRevision)
	}
	return fmt.Sprint(p.Revision)
}
