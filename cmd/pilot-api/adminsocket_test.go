package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// withAdmin serves the socket of a folder whose database is longer than what a
// socket takes in that nobody reads.
func withAdmin(t *testing.T, dir string, patience time.Duration) *embedded.Etcd {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if _, err := db.Client().Put(t.Context(), fmt.Sprint("/large/", i), strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	life, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = admin{db, etcd.DefaultPrefix, dir, log, patience}.Run(life)
	}()
	t.Cleanup(func() {
		end()
		<-ended
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	err = testbed.Until(t.Context(), "the socket", func(context.Context) error {
		conn, err := net.Dial("unix", filepath.Join(dir, socketName))
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// TestDefragmentBesideSave: it is refused until the snapshot is read.
func TestDefragmentBesideSave(t *testing.T) {
	dir := t.TempDir()
	withAdmin(t, dir, time.Hour)
	resp, err := ask(t.Context(), dir, http.MethodGet, snapshotPath)
	if err != nil {
		t.Fatal(err)
	}
	if text := command(t, exitFailed, "defragment", "--data-dir", dir); !strings.Contains(text, "a snapshot is being taken") {
		t.Errorf("defragment says %q", text)
	}
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != resp.ContentLength {
		t.Errorf("%d bytes of %d: %v", n, resp.ContentLength, err)
	}
	resp.Body.Close()
	err = testbed.Until(t.Context(), "a defragmentation", func(ctx context.Context) error {
		_, err := askDefragment(ctx, dir) // The last byte is read before the snapshot is closed.
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSaveStopped: a save that stops reading does not keep the file for good, and
// fails when it goes on.
func TestSaveStopped(t *testing.T) {
	dir := t.TempDir()
	db := withAdmin(t, dir, 100*time.Millisecond)
	resp, err := ask(t.Context(), dir, http.MethodGet, snapshotPath)
	if err == nil { // Else not even the head was sent in time, here.
		defer resp.Body.Close()
	}
	err = testbed.Until(t.Context(), "a defragmentation", func(ctx context.Context) error {
		_, _, err := db.Defragment(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if resp != nil {
		if n, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Errorf("all %d bytes were read", n)
		}
	}
}

// TestAdminSocketBehindProxy: what an Envoy passes on from others is refused.
func TestAdminSocketBehindProxy(t *testing.T) {
	dir := t.TempDir()
	withAdmin(t, dir, time.Minute)
	for _, header := range []string{"", "X-Request-Id", "X-Forwarded-For", "X-Envoy-Expected-Rq-Timeout-Ms", "Via"} {
		for _, ask := range [][2]string{{http.MethodGet, snapshotPath}, {http.MethodPost, defragmentPath}} {
			req, err := http.NewRequestWithContext(t.Context(), ask[0], "http://pilot-api"+ask[1], nil)
			if err != nil {
				t.Fatal(err)
			}
			want := http.StatusOK
			if header != "" {
				req.Header.Set(header, "a")
				want = http.StatusForbidden
			}
			resp, err := running(dir).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s %s with %q: %s, want %d", ask[0], ask[1], header, resp.Status, want)
			}
		}
	}
}
