package proxy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/offline"
	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// proxyFlags name a proxy and the files that replace a server.
type proxyFlags struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (Proxies, error)

	offline.Flags
	labels map[string]string
}

func (f *proxyFlags) add(cmd *cobra.Command) {
	f.Flags.Add(cmd)
	cmd.Flags().StringToStringVar(&f.labels, "labels", nil, "labels of the workload, such as istio=ingressgateway, for a proxy that the server does not know")
}

// compile returns a proxy's configuration according to the files alone. It reports what
// the objects ask for and cannot have.
func (f *proxyFlags) compile(ctx context.Context, s *cli.Session, node string) (explain.Proxy, error) {
	none := explain.Proxy{}
	proxy, err := f.identity(node)
	if err != nil {
		return none, err
	}
	snapshot, _, err := f.Snapshot(ctx, s)
	if err != nil {
		return none, err
	}
	config, problems := compile.Proxy(snapshot, snapshot.TraitsOf(proxy))
	s.ShowProblems(append(snapshot.Problems, problems...))
	return explain.Proxy{
		Config: config, IP: proxy.IP, Members: func(key string) []ir.Endpoint { return compile.Members(snapshot, key) },
		Resolve: func(host string) []string { return snapshot.Resolve(proxy, host) },
	}, nil
}

func (f *proxyFlags) identity(node string) (mesh.Proxy, error) {
	n, err := mesh.NewNode(node, "", f.labels)
	if err != nil {
		return mesh.Proxy{}, cli.Usage(err)
	}
	proxy, err := n.Proxy()
	if err != nil {
		return proxy, cli.Usagef("without a server the proxy must be named whole: %w", err)
	}
	return proxy, nil
}
