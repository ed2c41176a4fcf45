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
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// A snapshot contains private keys, which the API never returns (decision 021).
// It is served over a socket in the data folder instead: a user who can connect to
// the socket can also read the folder.

// socketName is the name of a running server's socket in its data folder.
const socketName = "pilot-api.sock"

const (
	snapshotPath   = "/snapshot"
	defragmentPath = "/defragment"
)

// patience is how long the reader of a snapshot may take for each part of it. The
// database file is not defragmented while a snapshot is open.
const patience = time.Minute

// admin serves commands that run on the server's own machine.
type admin struct {
	embedded *embedded.Etcd
	prefix   string
	dir      string
	log      *slog.Logger
	patience time.Duration
}

// Run serves until ctx ends. If the socket cannot be made, Run logs a warning and
// the server goes on without it.
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

// listenPrivately returns a listener on a socket that no other user can connect to at
// any moment. It replaces a socket that a killed server left behind.
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

// refuseProxied refuses requests that a proxy has passed on, because the proxy's
// client may have no right to read the folder.
func refuseProxied(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sign := proxied.Header(r.Header); sign != "" {
			http.Error(w, "this socket is for commands of this machine and takes nothing that a proxy passes on, which the header "+sign+" shows", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// snapshot answers with everything in the store.
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

// refuse answers with err.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, embedded.ErrSnapshotOpen) {
		code = http.StatusConflict
	}
	http.Error(w, err.Error(), code)
}

// patient is a response of which each part must be read within a time limit. The
// whole response may take any time.
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

// takeSnapshot returns a snapshot that includes the settings that the server remembers.
func takeSnapshot(ctx context.Context, db *embedded.Etcd, prefix, dir string) (*embedded.Snapshot, error) {
	told, err := os.ReadFile(filepath.Join(dir, settingsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := etcd.KeepSettings(ctx, db.Client(), prefix, told); err != nil {
		return nil, err
	}
	return db.Snapshot(ctx)
}

// running returns a client of the server that runs on a data folder.
func running(dir string) *http.Client {
	var dialer net.Dialer
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", filepath.Join(dir, socketName))
	}}}
}

// errNotRunning means that no server uses the data folder, so the caller may open it.
var errNotRunning = errors.New("no server runs on the data folder")

// ask sends a request to the server that runs on a data folder. The status of a
// returned response is 200.
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
