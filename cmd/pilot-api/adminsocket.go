package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/pilot-api/pilot-api/server/proxied"
	"github.com/pilot-api/pilot-api/store/etcd"
)

// A snapshot has private keys in it, which the API tells nobody (decision 021). So
// it leaves by a socket in the data folder: whoever may connect may read the
// folder too.

// socketName is the socket of a running server in its data folder.
const socketName = "pilot-api.sock"

const (
	snapshotPath   = "/snapshot"
	defragmentPath = "/defragment"
)

// patience is how long who takes a snapshot may leave a part of it unread. While
// one is open the database file is not defragmented.
const patience = time.Minute

// admin is what a server does for commands on its own machine.
type admin struct {
	embedded *etcd.Embedded
	prefix   string
	dir      string
	log      *slog.Logger
	patience time.Duration
}

// Run serves until ctx ends. That the socket cannot be made is no reason for a
// server not to serve.
func (a admin) Run(ctx context.Context) error {
	listener, err := listenPrivately(filepath.Join(a.dir, socketName))
	if err != nil {
		a.log.Warn("'pilot-api snapshot save' and 'defragment' need this server stopped: no socket in the data folder", "error", err)
		<-ctx.Done()
		return ctx.Err()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+snapshotPath, a.snapshot)
	mux.HandleFunc("POST "+defragmentPath, a.defragment)
	srv := &http.Server{Handler: refuseProxied(mux), BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	err = srv.Serve(listener)
	_ = os.Remove(filepath.Join(a.dir, socketName))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// listenPrivately makes a socket that at no moment anybody else can connect to. It
// takes the place of one that a killed server left.
func listenPrivately(name string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(name), ".s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, name)); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// refuseProxied refuses what a proxy has passed on: who asked the proxy may not read the
// folder.
func refuseProxied(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sign := proxied.Header(r.Header); sign != "" {
			http.Error(w, "this socket is for commands of this machine and takes nothing that a proxy passes on, which the header "+sign+" shows", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// snapshot answers with all that is stored.
func (a admin) snapshot(w http.ResponseWriter, r *http.Request) {
	snapshot, err := takeSnapshot(r.Context(), a.embedded, a.prefix, a.dir)
	if err != nil {
		refuse(w, err)
		return
	}
	defer snapshot.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(snapshot.Size(), 10))
	if n, err := snapshot.WriteTo(patient{w, a.patience}); err != nil {
		a.log.Warn("a snapshot was not read to its end", "bytes", n, "error", err)
		return
	}
	a.log.Info("a snapshot was taken", "bytes", snapshot.Size())
}

// refuse answers with what went wrong.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, etcd.ErrSnapshotOpen) {
		code = http.StatusConflict
	}
	http.Error(w, err.Error(), code)
}

// patient is an answer each part of which must be read in time, however long all of
// it takes.
type patient struct {
	http.ResponseWriter
	each time.Duration
}

func (p patient) Write(part []byte) (int, error) {
	if err := http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(p.each)); err != nil {
		return 0, err
	}
	return p.ResponseWriter.Write(part)
}

// takeSnapshot is a snapshot with what the server remembers of its settings.
func takeSnapshot(ctx context.Context, embedded *etcd.Embedded, prefix, dir string) (*etcd.Snapshot, error) {
	told, err := os.ReadFile(filepath.Join(dir, settingsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := embedded.KeepSettings(ctx, prefix, told); err != nil {
		return nil, err
	}
	return embedded.Snapshot(ctx)
}

// running is a client of the server that runs on a data folder.
func running(dir string) *http.Client {
	var dialer net.Dialer
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", filepath.Join(dir, socketName))
	}}}
}

// errNotRunning: the folder is free for who asked.
var errNotRunning = errors.New("no server runs on the data folder")

// ask has the server that runs on a folder do something. The answer is a good one.
func ask(ctx context.Context, dir, method, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://pilot-api"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := running(dir).Do(req)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, errNotRunning
	case err != nil:
		return nil, fmt.Errorf("ask the server that runs on %s: %w", dir, err)
	case resp.StatusCode == http.StatusOK:
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return nil, fmt.Errorf("the server that runs on %s answers %s: %s", dir, resp.Status, bytes.TrimSpace(text))
}
