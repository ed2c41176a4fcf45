package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/envoy"
)

func newBootstrap(s *session) *cobra.Command {
	var options envoy.BootstrapOptions
	cmd := &cobra.Command{
		Use:   "bootstrap NODE_ID",
		Short: "Print the configuration to start an Envoy with",
		Long: `Print the configuration to start an Envoy with, so that it asks the server named
by --server for everything else. NODE_ID is the proxy's identity,
role~ip~id~domain; the role is sidecar, ingress or router.

An Envoy that uses the v1 API takes its identity from the command line: start it
with --service-node NODE_ID, --service-cluster and --max-obj-name-len 189.`,
		Example: `  # A sidecar of today
  istioctl bootstrap sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local > envoy.yaml
  envoy -c envoy.yaml

  # One that notices changes within a second
  istioctl bootstrap sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local --refresh-delay 1s

  # A sidecar up to Envoy 1.8
  istioctl bootstrap sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local --api v1 > envoy.json`,
		Args: taught(cobra.ExactArgs(1), "say which proxy: istioctl bootstrap role~ip~id~domain, "+
			"such as sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local"),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		options.NodeID, options.Server = args[0], s.server
		text, err := envoy.Bootstrap(options)
		if err != nil {
			return &usageError{err}
		}
		_, err = s.Stdout.Write(text)
		return err
	}
	apis := make([]string, len(envoy.APIs))
	for i, api := range envoy.APIs {
		apis[i] = string(api)
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&options.API), "api", apis[0], "discovery API that the Envoy uses: "+strings.Join(apis, ", "))
	flags.StringVar(&options.Cluster, "service-cluster", envoy.DefaultNodeCluster, "cluster name that the Envoy states")
	flags.StringVar(&options.CAFile, "ca-file", envoy.DefaultCAFile, "authorities that the Envoy trusts for an https server")
	flags.IntVar(&options.AdminPort, "admin-port", envoy.DefaultAdminPort, "port of the Envoy's own interface, on loopback")
	flags.DurationVar(&options.RefreshDelay, "refresh-delay", envoy.DefaultRefreshDelay, "time between two polls for clusters and listeners")
	// The flag exists, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("api", cobra.FixedCompletions(apis, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
