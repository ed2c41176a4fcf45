package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// defragmented is the size of the store's file before and after, in bytes.
type defragmented struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

func newDefragment(c *console) *cobra.Command {
	var dir string
	cmd := c.command(&cobra.Command{
		Use:   "defragment",
		Short: "Return unused space of the embedded store's file to the disk",
		Long: `Rewrite the database file of --data-dir without the unused space that deleted objects
and dropped history have left, and clear etcd's alarm of no space. A running server
does this itself if at least 1 GiB and half of the file are unused. Use this command if
other programs need the disk space earlier.

If the server runs, the command asks it through the socket in the folder. Meanwhile
reads and writes of the store wait, about a second for each GiB; proxies do not wait.
The server refuses while a snapshot is taken. If the server does not run, the command
opens the folder itself. The disk must have room for a second copy of the used data.`,
		Example: `  pilot-api defragment --data-dir /var/lib/pilot-api`,
	}, func(f *pflag.FlagSet) {
		f.StringVar(&dir, "data-dir", "pilot-data", "folder of the embedded etcd")
	}, func(ctx context.Context, _ []string) error { return c.defragment(ctx, dir) })
	cmd.Args = noArgs
	return cmd
}

func (c *console) defragment(ctx context.Context, dir string) error {
	done, err := askDefragment(ctx, dir)
	if errors.Is(err, errNotRunning) {
		done, err = c.ownDefragment(ctx, dir)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "the database file has %d bytes, and had %d\n", done.After, done.Before)
	return nil
}

func askDefragment(ctx context.Context, dir string) (done defragmented, err error) {
	resp, err := ask(ctx, dir, http.MethodPost, defragmentPath)
	if err != nil {
		return done, err
	}
	defer resp.Body.Close()
	return done, json.NewDecoder(resp.Body).Decode(&done)
}

// ownDefragment defragments a folder on which no server runs.
func (c *console) ownDefragment(ctx context.Context, dir string) (done defragmented, err error) {
	db, err := c.openFolder(ctx, dir)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return defragment(ctx, db)
}

func defragment(ctx context.Context, db *embedded.Etcd) (done defragmented, err error) {
	done.Before, done.After, err = db.Defragment(ctx)
	return done, err
}

// defragment defragments the store and then answers.
func (a admin) defragment(w http.ResponseWriter, r *http.Request) {
	done, err := defragment(r.Context(), a.embedded)
	if err != nil {
		refuse(w, err)
		return
	}
	_ = json.NewEncoder(w).Encode(done) // The client may be gone.
}
