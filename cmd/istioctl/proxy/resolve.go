package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/proxies"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/store"
)

// resolveProxy returns the proxy for a node id, or for a part of a node id that only one
// connected proxy has.
func (f *proxyFlags) resolveProxy(ctx context.Context, c Lister, part string) (client.ProxyRef, error) {
	of := client.ProxyRef{Node: part, Labels: pairs(f.labels)}
	if strings.Count(part, "~") == 3 {
		return of, nil
	}
	nodes, err := knownNodes(ctx, c, part)
	switch {
	case err != nil:
		return of, err
	case len(nodes) == 0:
		return of, fmt.Errorf("no proxy is connected whose node has %q in it; one that is not can be asked about by its whole node id", part)
	case len(nodes) > 1:
		return of, fmt.Errorf("%q is a part of %s: say more of it:\n  %s", part, cli.Count(len(nodes), "node"), strings.Join(nodes, "\n  "))
	}
	of.Node = nodes[0]
	return of, nil
}

// warnRefusing warns that a proxy refuses its configuration, and so does something else
// than what is shown. It does not warn of an unknown proxy.
func warnRefusing(ctx context.Context, s *cli.Session, c Proxies, node string) {
	all, err := c.Proxy(ctx, node)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		s.Warn("whether the proxy takes this is not known: " + s.Explain(ctx, err))
	}
	for _, p := range all {
		for _, name := range explain.Types {
			if t := p.Types[name]; t.State == proxies.Rejected {
				s.Warn(fmt.Sprintf("%s refuses %s that follow from this, and runs those that it accepted last: %s",
					proxies.ShortNode(p.Node), name, cmp.Or(cli.OneLine(t.Error), "it does not say why")))
			}
		}
	}
}

// pairs returns labels in the form of a selector.
func pairs(labels map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, name+"="+labels[name])
	}
	return strings.Join(out, ",")
}

// knownNodes returns the node ids of connected proxies that contain part.
func knownNodes(ctx context.Context, c Lister, part string) ([]string, error) {
	proxies, err := c.Proxies(ctx)
	var nodes []string
	for _, p := range proxies {
		if strings.Contains(p.Node, part) && !slices.Contains(nodes, p.Node) {
			nodes = append(nodes, p.Node)
		}
	}
	return nodes, err
}

// completeNodes completes the node id of a connected proxy from any part of it.
func completeNodes(s *cli.Session) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, part string) ([]string, cobra.ShellCompDirective) {
		const nothing = cobra.ShellCompDirectiveNoFileComp
		if s.Begin(cmd, nil) != nil {
			return nil, nothing
		}
		c, err := s.Connect(func(string) {})
		if err != nil {
			return nil, nothing
		}
		nodes, _ := knownNodes(cmd.Context(), c, part)
		return nodes, nothing
	}
}
