package root

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
)

// Versioned returns the version of the server.
type Versioned interface {
	ServerVersion(ctx context.Context) (*apiversion.Info, error)
}

// VersionOptions has the flags of version.
type VersionOptions struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (Versioned, error)

	client bool
	output string
}

func newVersion(s *cli.Session) *cobra.Command {
	flags := VersionOptions{Connect: func(warn func(string)) (Versioned, error) { return s.Connect(warn) }}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of istioctl and of the server",
		Long:  `Show the versions of istioctl and of the server that it talks to.`,
		Example: `  # The versions of istioctl and of the server
  istioctl version

  # Only that of istioctl
  istioctl version --client`,
		Args: cli.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return flags.Run(cmd.Context(), s)
	}
	formats := []string{printer.YAML, printer.JSON}
	printer.AddFlag(cmd, &flags.output, formats)
	cmd.Flags().BoolVar(&flags.client, "client", false, "do not ask the server")
	cmd.PreRunE = func(*cobra.Command, []string) error { return printer.Check(flags.output, formats) }
	return cmd
}

// versions holds the versions of client and server. The server's version is nil if the
// server was not asked or did not answer.
type versions struct {
	Client apiversion.Info  `json:"clientVersion"`
	Server *apiversion.Info `json:"serverVersion,omitempty"`
}

func clientVersion(version string) apiversion.Info {
	return apiversion.Info{
		GitVersion: version, GoVersion: runtime.Version(), Compiler: runtime.Compiler,
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// Run prints the versions.
func (o VersionOptions) Run(ctx context.Context, s *cli.Session) error {
	both := versions{Client: clientVersion(s.Version)}
	var failure error
	if !o.client {
		c, err := o.Connect(s.Warn)
		if err != nil {
			return err
		}
		if both.Server, err = c.ServerVersion(ctx); err != nil {
			failure = s.Fail(ctx, err)
		}
	}
	text, err := both.format(o.output)
	if err != nil {
		return err
	}
	fmt.Fprint(s.Stdout, text)
	return failure
}

func (v versions) format(output string) (string, error) {
	if output != "" {
		return printer.Encode(output, v)
	}
	text := versionLine("Client", v.Client)
	if v.Server != nil {
		text += versionLine("Server", *v.Server)
	}
	return text, nil
}

func versionLine(side string, v apiversion.Info) string {
	return fmt.Sprintf("%s: %s (%s, %s)\n", side, v.GitVersion, v.GoVersion, v.Platform)
}
