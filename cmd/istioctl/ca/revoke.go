package ca

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
)

func newRevoke(s *cli.Session) *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:   "revoke SERIAL",
		Short: "End a certificate of a workload before its time",
		Long: `End a certificate of a workload before its time, by its serial number. The audit log of the
server has the number of each certificate, with the name of its workload, and 'openssl x509
-noout -serial' prints it. The server refuses a number of which its present roots have issued
no certificate. With --force it revokes that, too.

The server takes the certificate as no proof any more, so it is not renewed by it. Proxies
that have acknowledged the list of revoked certificates refuse it, as callers and as servers.
They end the connections that they took before within their drain time (envoy
--drain-time-s, 10 minutes by default).

The workload can get another certificate with a token of its ServiceAccount. To keep it out,
also delete the ServiceAccount, or revoke its tokens ('istioctl token revoke').`,
		Example: `  # End the certificate of a machine that was stolen
  istioctl ca revoke 7da2487f7d9cf5bb66227192d7ca1a39`,
		Args: cli.ArgsOr(cobra.ExactArgs(1), "say which certificate: istioctl ca revoke SERIAL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.Connect(s.Warn)
			if err != nil {
				return err
			}
			found, err := c.RevokeCertificate(cmd.Context(), args[0], force)
			if err != nil {
				return s.Fail(cmd.Context(), err)
			}
			fmt.Fprintf(s.Stdout, "certificate %s revoked\n", args[0])
			return show(s.Stdout, "", found)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "revoke the number even if no present root has issued a certificate with it")
	return cmd
}
