package proxy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/explain"
)

// configTypes are the parts of a proxy's configuration that can be shown.
var configTypes = append(slices.Clone(explain.Types), "all")

// ConfigOptions are the values of the flags of proxy-config.
type ConfigOptions struct {
	proxyFlags
	output string
}

// NewConfigCommand returns the command proxy-config.
func NewConfigCommand(s *cli.Session) *cobra.Command {
	f := ConfigOptions{proxyFlags: proxyFlags{Connect: connectTo(s)}}
	cmd := &cobra.Command{
		Use:     "proxy-config (" + strings.Join(configTypes, " | ") + ") PROXY",
		Aliases: []string{"pc"},
		Short:   "Show the configuration of a proxy",
		Long: `Show the configuration that the server has for a proxy: its clusters, listeners and
routes, the endpoints of its clusters, and its secrets without their keys. -o json and
-o yaml show Envoy's messages, with the version of each. The answer includes everything
that was written before the request. 'istioctl proxy-status' shows whether the proxy
runs it.

PROXY is a node ID, role~ip~id~domain, or a part of the ID of one connected proxy. For
a proxy that is not connected, give the whole ID. With -f, istioctl asks no server. It
compiles the objects of the files, which are all objects that it knows, and prints only
tables, because the server encodes Envoy's messages.`,
		Example: `  # The clusters to which a proxy sends requests
  istioctl proxy-config clusters productpage

  # Its routes if only the files of a folder were stored
  istioctl proxy-config routes sidecar~10.1.0.1~productpage.default~default.svc.cluster.local -f rules/

  # Everything, as the messages that Envoy receives
  istioctl proxy-config all productpage -o yaml`,
		Args:              cli.ArgsOr(cobra.ExactArgs(2), "say what and of which proxy: istioctl proxy-config %s PROXY", strings.Join(configTypes, "|")),
		ValidArgsFunction: completeConfig(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(cmd, args[0]); err != nil {
			return err
		}
		return f.Run(cmd.Context(), s, args[0], args[1])
	}
	f.add(cmd)
	printer.AddFlag(cmd, &f.output, printer.DocumentFormats)
	return cmd
}

func (f *ConfigOptions) check(cmd *cobra.Command, configType string) error {
	if !slices.Contains(configTypes, configType) {
		return cli.Usagef("there is no %q of a proxy: allowed are %s", configType, strings.Join(configTypes, ", "))
	}
	if err := printer.Check(f.output, printer.DocumentFormats); err != nil {
		return err
	}
	if f.Offline() && !printer.IsTable(f.output) {
		return cli.Usagef("-o %s shows Envoy's messages, which a server writes: with -f there is the table", f.output)
	}
	return f.Check(cmd)
}

// completeConfig completes a type, and then the node of a connected proxy.
func completeConfig(s *cli.Session) cobra.CompletionFunc {
	nodes := completeNodes(s)
	return func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return configTypes, cobra.ShellCompDirectiveNoFileComp
		case 1:
			return nodes(cmd, args, part)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// Run shows a part of the configuration of a proxy, or all of it.
func (f *ConfigOptions) Run(ctx context.Context, s *cli.Session, configType, proxy string) error {
	if !printer.IsTable(f.output) {
		c, err := f.Connect(s.Warn)
		if err != nil {
			return err
		}
		of, err := f.resolveProxy(ctx, c, proxy)
		if err != nil {
			return s.Fail(ctx, err)
		}
		found, err := c.Config(ctx, of, configType)
		if err != nil {
			return s.Fail(ctx, err)
		}
		return printer.WriteDocument(s.Stdout, f.output, found)
	}
	summary, err := f.summary(ctx, s, proxy, configType)
	if err != nil {
		return err
	}
	return showSummary(s, summary, configType)
}

// summary returns the proxy's configuration from the files, or else from the server.
func (f *proxyFlags) summary(ctx context.Context, s *cli.Session, proxy, configType string) (*explain.Summary, error) {
	if f.Offline() {
		p, err := f.compile(ctx, s, proxy)
		if err != nil {
			return nil, err
		}
		return p.Summary(), nil
	}
	c, err := f.Connect(s.Warn)
	if err != nil {
		return nil, err
	}
	of, err := f.resolveProxy(ctx, c, proxy)
	if err != nil {
		return nil, s.Fail(ctx, err)
	}
	found, err := c.Summary(ctx, of, configType)
	if err != nil {
		return nil, s.Fail(ctx, err)
	}
	warnRefusing(ctx, s, c, of.Node)
	return found, nil
}

// showSummary prints one table of the summary, or all of them.
func showSummary(s *cli.Session, all *explain.Summary, configType string) error {
	shows := map[string]func() error{
		"clusters":  func() error { return showClusters(s, all.Clusters) },
		"listeners": func() error { return showListeners(s, all.Listeners) },
		"routes":    func() error { return showRoutes(s, all.Routes) },
		"endpoints": func() error { return showEndpoints(s, all.Endpoints) },
		"secrets":   func() error { return showSecrets(s, all.Secrets) },
	}
	if show := shows[configType]; show != nil {
		return show()
	}
	for i, name := range configTypes[:len(configTypes)-1] {
		if name == "secrets" && len(all.Secrets) == 0 {
			continue // Few proxies have any.
		}
		if i > 0 {
			fmt.Fprintln(s.Stdout)
		}
		if err := shows[name](); err != nil {
			return err
		}
	}
	return nil
}

func showClusters(s *cli.Session, rows []explain.ClusterRow) error {
	tab := printers.GetNewTabWriter(s.Stdout)
	fmt.Fprintln(tab, "CLUSTER\tTYPE\tENDPOINTS\tBALANCER\tTLS\tOF")
	for _, r := range rows {
		tls := "-"
		if r.TLS {
			tls = "yes"
		}
		fmt.Fprintf(tab, "%s\t%s\t%d\t%s\t%s\t%s\n", r.Name, r.Type, r.Endpoints, cmp.Or(r.Balancer, "-"), tls, cmp.Or(originsText(r.Origins), "-"))
	}
	return tab.Flush()
}

func showListeners(s *cli.Session, rows []explain.ListenerRow) error {
	tab := printers.GetNewTabWriter(s.Stdout)
	fmt.Fprintln(tab, "LISTENER\tDIRECTION\tTAKES\tOPEN\tOF")
	for _, r := range rows {
		open := "-"
		if r.Bound {
			open = "yes"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\n", r.Address, r.Direction, r.Takes, open, cmp.Or(originsText(r.Origins), "-"))
	}
	return tab.Flush()
}

// showRoutes prints the routes. It also prints the output of 'route --all'.
func showRoutes(s *cli.Session, rows []explain.RouteRow) error {
	tab := printers.GetNewTabWriter(s.Stdout)
	fmt.Fprintln(tab, "LISTENER\tHOST\tMATCH\tTO\tRULE\tWITH")
	for _, r := range rows {
		rule := strings.TrimSpace(originsText(r.Origins) + " " + r.Name)
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Listener, cmp.Or(r.Host, "-"), r.Match, r.To, cmp.Or(rule, "-"), cmp.Or(r.With, "-"))
	}
	return tab.Flush()
}

func showEndpoints(s *cli.Session, rows []explain.EndpointRow) error {
	tab := printers.GetNewTabWriter(s.Stdout)
	fmt.Fprintln(tab, "CLUSTER\tENDPOINT\tZONE\tWEIGHT")
	for _, r := range rows {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%d\n", r.Cluster, r.Address, cmp.Or(r.Zone, "-"), max(r.Weight, 1))
	}
	return tab.Flush()
}

func showSecrets(s *cli.Session, rows []explain.SecretRow) error {
	tab := printers.GetNewTabWriter(s.Stdout)
	fmt.Fprintln(tab, "SECRET\tUSE\tSUBJECT\tNAMES\tVALID UNTIL\tSHA-256\tOF")
	for _, r := range rows {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Use, r.Subject, cmp.Or(strings.Join(r.Names, ","), "-"),
			r.NotAfter.Format(time.RFC3339), r.Fingerprint, cmp.Or(originsText(r.Origins), "-"))
	}
	return tab.Flush()
}
