package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/store/etcd"
)

// migration holds the flags of migrate.
type migration struct {
	from   string
	prefix string
	to     etcd.DialOptions
}

func newMigrate(c *console) *cobra.Command {
	var m migration
	cmd := c.command(&cobra.Command{
		Use:   "migrate --from DATA_DIR --to-endpoints URL,…",
		Short: "Bring everything from the embedded store into an etcd cluster",
		Long: `Copy all objects and their history from the data folder of a stopped server to an
etcd cluster, for pilot-api --etcd-endpoints. Meanwhile proxies keep the configuration
that they have.

The cluster must not have objects yet. A server that uses it is not ready until all
objects have been copied and verified; then it has all of them at once. If the command
is interrupted, run it again: it starts from the beginning. The data folder is not
changed. Objects get new revisions, so programs that watch list them again. The mesh
settings are a file: start the new server with the same --mesh-config.`,
		Example: `  pilot-api migrate --from /var/lib/pilot-api --to-endpoints https://etcd-1:2379,https://etcd-2:2379 --to-ca ca.pem
  pilot-api --etcd-endpoints https://etcd-1:2379,https://etcd-2:2379 --etcd-ca ca.pem`,
	}, m.register, func(ctx context.Context, _ []string) error { return c.migrate(ctx, m) })
	cmd.Args = noArgs
	return cmd
}

func (m *migration) register(f *pflag.FlagSet) {
	f.StringVar(&m.from, "from", "", "data folder of the embedded etcd")
	f.StringVar(&m.prefix, "etcd-prefix", etcd.DefaultPrefix, "prefix of all keys, in the data folder and in the cluster")
	f.StringSliceVar(&m.to.Endpoints, "to-endpoints", nil, "etcd servers to which everything is copied")
	f.StringVar(&m.to.CAFile, "to-ca", "", "file with the certificate authority of the etcd servers")
	f.StringVar(&m.to.CertFile, "to-cert", "", "file with the client certificate for etcd (with --to-key)")
	f.StringVar(&m.to.KeyFile, "to-key", "", "file with the key of --to-cert")
	f.StringVar(&m.to.Username, "to-user", "", "user name at etcd (with --to-password-file)")
	f.StringVar(&m.to.PasswordFile, "to-password-file", "", "file with the password of --to-user")
}

// targetTimeout is how long the target of a migration may take to answer at first.
const targetTimeout = 10 * time.Second

// answers returns an error unless an etcd answers soon.
func answers(ctx context.Context, client *clientv3.Client) error {
	within, cancel := context.WithTimeout(ctx, targetTimeout)
	defer cancel()
	_, err := client.Get(within, "health")
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("etcd does not answer within %s", targetTimeout)
	}
	return err
}

func (c *console) migrate(ctx context.Context, m migration) error {
	if m.from == "" || len(m.to.Endpoints) == 0 {
		return fmt.Errorf("%w: migrate wants --from and --to-endpoints", errUsage)
	}
	if err := validateEndpoints("--to-endpoints", m.to.Endpoints); err != nil {
		return err
	}
	m.to.Log = c.log()
	to, err := etcd.Dial(ctx, m.to)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := answers(ctx, to); err != nil {
		return fmt.Errorf("--to-endpoints %s: %w", strings.Join(m.to.Endpoints, ","), err)
	}
	from, err := c.openStore(ctx, m.from, m.prefix)
	if err != nil {
		return err
	}
	defer func() { c.warn(from.Close()) }()
	objects, err := etcd.Migration{
		From: from.Client(), To: to, Prefix: m.prefix,
		Progress: func(done, total int) { c.draw("%d of %d entries", done, total) },
	}.Run(ctx)
	c.clear()
	switch {
	case errors.Is(err, etcd.ErrNotEmpty):
		return err
	case err != nil:
		return fmt.Errorf("%w; run it again: until it is done, a server that uses the target waits", err)
	}
	fmt.Fprintf(c.stdout, "%d objects with their history are in %v\n", objects, m.to.Endpoints)
	return nil
}
