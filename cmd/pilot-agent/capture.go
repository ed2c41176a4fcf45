package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/agent/capture"
	"github.com/pilot-api/pilot-api/agent/capture/host"
	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
	"github.com/pilot-api/pilot-api/agent/capture/probe"
)

func newCapture() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "capture",
		Short: "Decide which connections go through the proxy",
		Long: `Decide which connections of this machine go through its proxy, by rules of the
kernel's packet filter: nftables, or iptables where there is no nft.

Never captured are port 22, connections to the servers of the control plane
(--server), connections between programs of the machine, what the machine only
forwards, and what the proxy and the agent send (--proxy-uid, --proxy-gid).

The rules end with the machine: install them at each start, before the workload.
Flags have the names and letters of istio-iptables; those that begin with
--istio- can be set in the environment, as ISTIO_INBOUND_PORTS.`,
		Example: `  # All TCP connections, in and out
  pilot-agent capture install

  # Inbound connections to two ports, outbound ones to one block of addresses
  pilot-agent capture install -b 8080,9090 -i 10.0.0.0/8

  # See the rules first
  pilot-agent capture print -b 8080,9090 -i 10.0.0.0/8`,
		Args: known,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newInstall(), newRemove(), newCheck(), newPrint())
	return cmd
}

// parse reads the settings of a command.
func parse(cmd *cobra.Command, f *capture.Flags) (*capture.Settings, error) {
	if err := fromEnvironment(cmd.Flags()); err != nil {
		return nil, err
	}
	s, err := f.Parse(capture.ThisMachine(cmd.Context()))
	if err != nil {
		return nil, usage(err)
	}
	return s, nil
}

// choice are the flags that say which program changes the packet filter.
type choice struct {
	native  bool
	variant string
}

func (c *choice) register(flags *pflag.FlagSet) {
	flags.BoolVar(&c.native, "native-nftables", false, "use nft (true) or iptables-restore (false); without this flag nft, if there is one")
	flags.StringVar(&c.variant, "force-iptables-binary", "", "the variant of iptables to use: legacy or nft")
}

func (c *choice) read(cmd *cobra.Command) (out host.Choice, err error) {
	if !slices.Contains([]string{"", "legacy", "nft"}, c.variant) {
		return out, usage(fmt.Errorf("--force-iptables-binary: %q is no variant; legacy and nft are", c.variant))
	}
	out.Variant = c.variant
	if c.variant != "" {
		forbidden := false
		out.NFT = &forbidden
	}
	if cmd.Flags().Changed("native-nftables") {
		if c.native && c.variant != "" {
			return out, usage(errors.New("--native-nftables and --force-iptables-binary contradict each other"))
		}
		out.NFT = &c.native
	}
	return out, nil
}

func newInstall() *cobra.Command {
	var f capture.Flags
	var c choice
	var dry bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the rules that capture connections",
		Long: `Install the rules that capture connections, in place of those that this command
installed before. If it fails, everything is as it was. Rules of other programs, such
as Docker, stay as they are. If another mesh captures connections of this machine,
nothing is changed, and the message names its rules.

The capability CAP_NET_ADMIN is needed.`,
		Example: `  # All TCP connections, in and out
  pilot-agent capture install

  # The workload sees the addresses of its callers
  pilot-agent capture install -m TPROXY

  # Not what is sent to a database, and nothing that the backup user's group sends
  pilot-agent capture install -x 10.9.0.0/16 --istio-outbound-owner-groups-exclude backup`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := parse(cmd, &f)
			if err != nil {
				return err
			}
			with, err := c.read(cmd)
			if err != nil {
				return err
			}
			if dry {
				return printRules(cmd.OutOrStdout(), s, with.NFT == nil || *with.NFT)
			}
			notes, err := host.Install(cmd.Context(), s, with)
			if err != nil {
				return err
			}
			return lines(cmd.OutOrStdout(), notes)
		},
	}
	f.Register(cmd.Flags())
	c.register(cmd.Flags())
	cmd.Flags().BoolVarP(&dry, "dry-run", "n", false, "print the rules and install nothing")
	return cmd
}

func lines(out io.Writer, notes []string) error {
	_, err := io.WriteString(out, strings.Join(append(notes, ""), "\n"))
	return err
}

func newRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove",
		Short: "Remove all rules that capture connections",
		Long: `Remove everything that pilot-agent capture install put in place: rules, by
whichever program they were installed, and routing rules. If there is nothing, that is
no error. Connections that are open stay as they are.`,
		Example: `  pilot-agent capture remove`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			removed, err := host.Remove(cmd.Context())
			if err != nil {
				return err
			}
			if len(removed) == 0 {
				removed = []string{"nothing was installed"}
				return lines(cmd.OutOrStdout(), removed)
			}
			for i, what := range removed {
				removed[i] = "removed: " + what
			}
			return lines(cmd.OutOrStdout(), removed)
		},
	}
}

func newCheck() *cobra.Command {
	var f capture.Flags
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "check",
		Short: "See if connections are captured",
		Long: `See if the rules of these flags are installed, and make connections to see what
becomes of them. The command opens no port. Each line says what was tried; one that begins with FAIL also says what to do.
The exit code is 1 if something is wrong.

Use the flags that install was given.`,
		Example: `  pilot-agent capture check
  pilot-agent capture check -b 8080,9090 -i 10.0.0.0/8`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := parse(cmd, &f)
			if err != nil {
				return err
			}
			found, err := host.Find(cmd.Context())
			if err != nil {
				return err
			}
			results := append(probe.Installed(s, found), probe.Connections(cmd.Context(), s, timeout)...)
			failed := false
			for _, r := range results {
				failed = failed || r.State == probe.Failed
				fmt.Fprintln(cmd.OutOrStdout(), r)
			}
			if failed {
				return errReported
			}
			return nil
		},
	}
	f.Register(cmd.Flags())
	cmd.Flags().DurationVar(&timeout, "probe-timeout", 5*time.Second, "how long to wait for each connection")
	return cmd
}

func newPrint() *cobra.Command {
	var f capture.Flags
	var format string
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the rules that install would install",
		Long: `Print the rules that install would install, as nft or iptables-restore read them.
Nothing is changed, and no rights are needed.`,
		Example: `  pilot-agent capture print
  pilot-agent capture print --format iptables -m TPROXY`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := parse(cmd, &f)
			if err != nil {
				return err
			}
			switch format {
			case "nftables", "iptables":
				return printRules(cmd.OutOrStdout(), s, format == "nftables")
			}
			return usage(fmt.Errorf("--format: %q is no format; nftables and iptables are", format))
		},
	}
	f.Register(cmd.Flags())
	cmd.Flags().StringVar(&format, "format", "nftables", "nftables or iptables")
	return cmd
}

// printRules prints a script, with the commands for the rest as comments.
func printRules(out io.Writer, s *capture.Settings, nft bool) error {
	var text strings.Builder
	rules := s.Ruleset()
	if nft {
		text.WriteString("# nft -f -\n" + rules.NFT())
	} else {
		text.WriteString("# iptables-restore --noflush\n" + rules.IPTables(netfilter.IPv4, nil))
		if s.IPv6 {
			text.WriteString("\n# ip6tables-restore --noflush\n" + rules.IPTables(netfilter.IPv6, nil))
		}
	}
	for _, command := range s.Commands() {
		text.WriteString("# " + command + "\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}
