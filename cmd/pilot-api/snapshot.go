package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/internal/wholefile"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// snapshotMode keeps other users from reading a snapshot, which contains private keys.
const snapshotMode = 0o600

func newSnapshot(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save the embedded store as one file, and restore it",
		Long: `Save everything in the embedded etcd as one file: objects with their private keys,
their history, and the mesh settings that proxies were sent. The file has the format of
etcd's own snapshots, and mode 0600.`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSnapshotSave(c), newSnapshotRestore(c), newSnapshotStatus(c))
	return cmd
}

func newSnapshotSave(c *console) *cobra.Command {
	var o options
	return c.command(&cobra.Command{
		Use:   "save FILE",
		Short: "Save the embedded store of a running or stopped server",
		Long: `Save the embedded store of --data-dir. If the server runs, the command asks it through
the socket in the folder, and the server continues; otherwise it opens the folder
itself. The file appears only when it is complete and its checksum is verified. It
replaces a file or a symbolic link of the same name. A device or named pipe, such as
/dev/stdout, is written to.`,
		Example: `  pilot-api snapshot save --data-dir /var/lib/pilot-api /backup/pilot-api.db`,
	}, o.registerFolder, func(ctx context.Context, args []string) error { return c.save(ctx, o, args[0]) })
}

func newSnapshotRestore(c *console) *cobra.Command {
	var o options
	return c.command(&cobra.Command{
		Use:   "restore FILE",
		Short: "Create a data folder from a snapshot",
		Long: `Create the data folder --data-dir from a snapshot. The folder must be empty or missing.
The store continues with revisions far beyond all that it ever returned. Earlier
revisions cannot be watched or listed any more: programs that watch get 410 and list
again.`,
		Example: `  pilot-api snapshot restore /backup/pilot-api.db --data-dir /var/lib/pilot-api`,
	}, o.registerFolder, func(ctx context.Context, args []string) error { return c.restore(ctx, o, args[0]) })
}

func newSnapshotStatus(c *console) *cobra.Command {
	var output string
	return c.command(&cobra.Command{
		Use:     "status FILE",
		Short:   "Verify a snapshot, and describe its content",
		Long:    `Verify the checksum of a snapshot, read all of it, and describe its content.`,
		Example: `  pilot-api snapshot status /backup/pilot-api.db -o json`,
	}, func(f *pflag.FlagSet) {
		f.StringVarP(&output, "output", "o", "", "json; the default is a line of text")
	}, func(_ context.Context, args []string) error {
		status, err := embedded.ReadSnapshot(args[0])
		switch {
		case err != nil:
			return err
		case output == "json":
			return json.NewEncoder(c.stdout).Encode(status)
		case output != "":
			return fmt.Errorf("%w: -o %s: must be json", errUsage, output)
		}
		describe(c.stdout, args[0], status)
		return nil
	})
}

// registerFolder adds the flags of commands on a data folder.
func (o *options) registerFolder(f *pflag.FlagSet) {
	f.StringVar(&o.dataDir, "data-dir", "pilot-data", "folder of the embedded etcd")
	f.StringVar(&o.etcdPrefix, "etcd-prefix", etcd.DefaultPrefix, "prefix of all keys in etcd")
}

func describe(to io.Writer, name string, s embedded.SnapshotStatus) {
	fmt.Fprintf(to, "%s: revision %d, %d keys, %d bytes, sha256 %s\n", name, s.Revision, s.Keys, s.Bytes, s.SHA256)
}

// save writes a snapshot from the server that runs on the folder. If none runs, it
// opens the folder itself.
func (c *console) save(ctx context.Context, o options, name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return fmt.Errorf("%w: save %s: is a folder, say the file to write", errUsage, name)
	}
	source, err := c.openSnapshot(ctx, o)
	if err != nil {
		return err
	}
	defer source.close()
	var status embedded.SnapshotStatus
	err = wholefile.Write(name, snapshotMode, func(f *os.File) error {
		defer c.clear()
		if err := source.write(&progress{Writer: f, console: c, total: source.size}); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		status, err = embedded.ReadSnapshot(f.Name())
		return err
	})
	if err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	if wholefile.Replaces(name) {
		describe(c.stdout, name, status)
	} else {
		describe(c.stderr, name, status) // Standard output may hold the snapshot.
	}
	return nil
}

// snapshotSource is a snapshot that can be written once.
type snapshotSource struct {
	size  int64
	write func(io.Writer) error
	close func()
}

func (c *console) openSnapshot(ctx context.Context, o options) (*snapshotSource, error) {
	source, err := askSnapshot(ctx, o.dataDir)
	if errors.Is(err, errNotRunning) {
		return c.ownSnapshot(ctx, o)
	}
	return source, err
}

func askSnapshot(ctx context.Context, dir string) (*snapshotSource, error) {
	resp, err := ask(ctx, dir, http.MethodGet, snapshotPath)
	if err != nil {
		return nil, err
	}
	return &snapshotSource{
		size:  resp.ContentLength,
		write: func(w io.Writer) error { _, err := io.Copy(w, resp.Body); return err },
		close: func() { resp.Body.Close() },
	}, nil
}

// ownSnapshot takes a snapshot of a folder on which no server runs.
func (c *console) ownSnapshot(ctx context.Context, o options) (*snapshotSource, error) {
	db, err := c.openStore(ctx, o.dataDir, o.etcdPrefix)
	if err != nil {
		return nil, err
	}
	snapshot, err := takeSnapshot(ctx, db, o.etcdPrefix, o.dataDir)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &snapshotSource{
		size:  snapshot.Size(),
		write: func(w io.Writer) error { _, err := snapshot.WriteTo(w); return err },
		close: func() {
			snapshot.Close()
			c.warn(db.Close())
		},
	}, nil
}

// openFolder starts the embedded etcd of a folder that contains data.
func (c *console) openFolder(ctx context.Context, dir string) (*embedded.Etcd, error) {
	if _, err := os.Stat(filepath.Join(dir, "member")); err != nil {
		return nil, fmt.Errorf("there is no data in the folder %s: %w", dir, err)
	}
	return embedded.Start(ctx, embedded.Options{Dir: dir, Log: c.log()})
}

// openStore is openFolder with a check that there are objects under the prefix. A
// snapshot with a wrong prefix would contain none.
func (c *console) openStore(ctx context.Context, dir, prefix string) (*embedded.Etcd, error) {
	db, err := c.openFolder(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := etcd.Holds(ctx, db.Client(), prefix); err != nil {
		return nil, errors.Join(fmt.Errorf("the data in %s: %w", dir, err), db.Close())
	}
	return db, nil
}

func (c *console) restore(ctx context.Context, o options, name string) error {
	done, err := etcd.Restore(ctx, etcd.RestoreOptions{File: name, Dir: o.dataDir, Prefix: o.etcdPrefix, Log: c.log()})
	if err != nil {
		return err
	}
	if done.Settings != nil {
		c.warn(wholefile.WriteText(filepath.Join(o.dataDir, settingsFile), 0o600, done.Settings))
	}
	for _, u := range done.Unreadable {
		c.warn(u.Err())
	}
	fmt.Fprintf(c.stdout, "%d objects as of revision %d are in %s; the next revision is after %d\n", done.Objects, done.Then, o.dataDir, done.Now)
	return nil
}
