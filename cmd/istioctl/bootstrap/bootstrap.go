package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/mesh"
)

// Sockets returns where the sockets of the server are.
type Sockets interface {
	Sockets(ctx context.Context) (client.Sockets, error)
}

// Options has the flags of bootstrap.
type Options struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (Sockets, error)

	envoy  envoy.BootstrapOptions
	socket bool // use that of a server on this machine
	paced  bool // the time between polls was given
}

// NewCommand returns the command bootstrap.
func NewCommand(s *cli.Session) *cobra.Command {
	flags := Options{
		Connect: func(warn func(string)) (Sockets, error) { return s.Connect(warn) },
		envoy:   envoy.DefaultBootstrap(),
	}
	cmd := &cobra.Command{
		Use:   "bootstrap NODE_ID",
		Short: "Print a bootstrap configuration for an Envoy or for gRPC",
		Long: `Print the configuration with which an Envoy starts and then uses the server at
--server. NODE_ID is the proxy's identity, role~ip~id~domain. The role is sidecar,
ingress or router.

If the server runs on this machine under the same user, the Envoy uses a socket in
the server's data folder. Only this user can open it, so the server sends private
keys over it. Other Envoys get private keys only with a certificate (--xds-cert) or with
a token (--xds-token-file).

Two Envoys on one machine need different admin ports and base IDs, and their
listeners need different ports. An Envoy that finds a port in use reports it and runs
without that listener.

An Envoy of the v1 API takes its identity from the command line: start it with
--service-node NODE_ID, --service-cluster and --max-obj-name-len 189.`,
		Example: `  # A sidecar with a current Envoy
  istioctl bootstrap sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local > envoy.yaml
  envoy -c envoy.yaml

  # A second sidecar on the same machine
  istioctl bootstrap sidecar~10.0.0.8~web-2.shop~shop.svc.cluster.local --admin-port 0 > second.yaml
  envoy -c second.yaml --use-dynamic-base-id --admin-address-path second.admin

  # A sidecar that uses another replica of the server if its own fails
  istioctl bootstrap sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local --xds 10.1.0.1:15010,10.1.0.2:15010

  # A sidecar with a client certificate, for a server that streams with TLS
  istioctl bootstrap sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local --xds mesh.example:15010 \
      --xds-ca ca.crt --xds-cert web.crt --xds-key web.key

  # A sidecar that proves itself by a token
  istioctl token create web -n shop --audience pilot-api-xds --ttl 720h --envoy-file /etc/envoy/token.yaml
  istioctl bootstrap sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local --xds mesh.example:15010 \
      --xds-ca ca.crt --xds-token-file /etc/envoy/token.yaml

  # A sidecar that polls every 10 to 20 seconds
  istioctl bootstrap sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local --api rest --refresh-delay 10s

  # A router for the Gateways whose selector is istio: ingressgateway
  istioctl bootstrap router~10.0.0.9~edge-1.shop~shop.svc.cluster.local --labels istio=ingressgateway > envoy.yaml
  envoy -c envoy.yaml

  # A program that speaks gRPC to targets such as xds:///reviews.shop:9080, without an Envoy
  istioctl bootstrap sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local --api grpc > grpc.json
  GRPC_XDS_BOOTSTRAP=grpc.json ./web

  # A sidecar with an Envoy up to 1.8
  istioctl bootstrap sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local --api v1 > envoy.json`,
		Args: cli.ArgsOr(cobra.ExactArgs(1), "say which proxy: istioctl bootstrap role~ip~id~domain, "+
			"such as sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		flags.paced = cmd.Flags().Changed(refreshDelay)
		return flags.Run(cmd.Context(), s, args[0])
	}
	addBootstrap(cmd, &flags.envoy)
	cmd.Flags().BoolVar(&flags.socket, "socket", true, "use the socket of a server on this machine; false for an Envoy of another user, which gets no private keys")
	return cmd
}

// Run prints the configuration of the proxy with a node ID.
func (o Options) Run(ctx context.Context, s *cli.Session, node string) error {
	o.envoy.NodeID, o.envoy.Server = node, s.Server
	if file := o.envoy.XDSTokenFile; file != "" {
		// An Envoy follows only files that it knows by their whole path.
		whole, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		o.envoy.XDSTokenFile = whole
	}
	text, err := envoy.Bootstrap(o.envoy)
	if err := errors.Join(checkNode(node, o.envoy.Labels), o.checkPolls(), err); err != nil {
		return cli.Usage(err)
	}
	o.useSocket(ctx, s)
	if ctx.Err() != nil {
		return s.Fail(ctx, ctx.Err())
	}
	if o.envoy.Socket != "" {
		if text, err = envoy.Bootstrap(o.envoy); err != nil {
			return err
		}
	}
	_, err = s.Stdout.Write(text)
	return err
}

const refreshDelay = "refresh-delay"

func addBootstrap(cmd *cobra.Command, options *envoy.BootstrapOptions) {
	apis := make([]string, len(envoy.APIs))
	for i, api := range envoy.APIs {
		apis[i] = string(api)
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&options.API), "api", string(options.API), "discovery API that the Envoy uses, or grpc for a program without one: "+strings.Join(apis, ", "))
	flags.StringSliceVar(&options.XDS, "xds", nil, "HOST:PORT[,HOST:PORT...] where the replicas of the server answer Envoys: "+
		"with streams for delta and ads (port 15010 of --server's host), with HTTP for rest and v1 (--server)")
	flags.StringVar(&options.Cluster, "service-cluster", options.Cluster, "cluster name that the Envoy states")
	flags.StringToStringVar(&options.Labels, "labels", nil, "labels of the workload that the Envoy states, such as app=web,version=v1; objects select proxies by them")
	flags.StringVar(&options.Locality, "locality", "", "REGION/ZONE/SUBZONE of the workload that the Envoy states; closer instances are preferred")
	flags.StringVar(&options.CAFile, "ca-file", options.CAFile, "authorities that the Envoy trusts for an https server")
	flags.StringVar(&options.XDSCAFile, "xds-ca", "", "authorities of a server that streams with TLS (--grpc-tls-cert of pilot-api); the default is --ca-file if --server is https")
	flags.StringVar(&options.XDSCertFile, "xds-cert", "", "client certificate of the Envoy for streams, with --xds-key (--grpc-client-ca of pilot-api)")
	flags.StringVar(&options.XDSKeyFile, "xds-key", "", "key of --xds-cert")
	flags.StringVar(&options.XDSTokenFile, "xds-token-file", "", "file with the token by which the proxy proves itself (pilot-api --proxy-auth token): for an Envoy made by 'istioctl token create --envoy-file', for gRPC with the token alone")
	flags.IntVar(&options.AdminPort, "admin-port", options.AdminPort,
		"port of the Envoy's admin interface, on loopback; 0 chooses a free port, which envoy --admin-address-path FILE writes to FILE")
	flags.DurationVar(&options.RefreshDelay, refreshDelay, options.RefreshDelay, "time between two polls for clusters and listeners, with --api rest or v1")
	// The flag exists, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("api", cobra.FixedCompletions(apis, cobra.ShellCompDirectiveNoFileComp))
}

// checkPolls refuses a time between polls for an API that does not poll.
func (o Options) checkPolls() error {
	api := o.envoy.API
	if !o.paced || !api.Streams() {
		return nil
	}
	return fmt.Errorf("--%s is for --api %s and %s: with %s what changes is pushed", refreshDelay, envoy.REST, envoy.V1, api)
}

// checkNode checks that the identity is complete and that the server will accept it.
func checkNode(id string, labels mesh.Labels) error {
	_, err := mesh.ParseProxy(id)
	if err == nil && slices.Contains(strings.Split(id, "~"), "") {
		err = fmt.Errorf("node %q: no part may be empty", id)
	}
	if err != nil {
		return fmt.Errorf("node ID must be role~ip~id~domain, like sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local: %w", err)
	}
	_, err = mesh.NewNode(id, "", labels)
	return err
}
