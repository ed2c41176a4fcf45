package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// startLimit is far more time than a start takes, on any machine.
const startLimit = time.Minute

// world is the set of programs that make a history.
type world struct {
	servers []*testbed.Server
	etcd    *testbed.Etcd     // nil when it is embedded.
	links   [][]*testbed.Link // From each server to each member.
	data    string            // Of the embedded etcd.

	collected *collector // Of an external etcd.

	complaints []error              // About programs that did not end.
	compacted  func(revision int64) // Called before etcd is compacted.
}

// openEmbedded starts one server with its own etcd.
func openEmbedded(ctx context.Context, dir, program string) (*world, error) {
	w := &world{data: filepath.Join(dir, "data")}
	s, err := testbed.NewServer(dir, "pilot-api", program, "--log-level", "warn", "--data-dir", w.data)
	if err != nil {
		return nil, err
	}
	w.servers = []*testbed.Server{s}
	return w, w.start(ctx)
}

func openExternal(ctx context.Context, dir, program string) (*world, error) {
	return openReplicas(ctx, dir, program)
}

// openReplicas starts two servers over three members, with a link between each server and
// member.
func openReplicas(ctx context.Context, dir, program string, args ...string) (*world, error) {
	members, err := testbed.StartEtcd(ctx, dir, 3)
	w := &world{etcd: members}
	if err != nil {
		return w, err
	}
	direct, err := members.Dial()
	if err != nil {
		return w, err
	}
	w.collected = collect(direct)
	for i := range 2 {
		var links []*testbed.Link
		endpoints := ""
		for _, m := range members.Members {
			l, err := testbed.NewLink(m.Client, nil)
			if err != nil {
				return w, err
			}
			links = append(links, l)
			endpoints += ",http://" + l.Addr()
		}
		s, err := testbed.NewServer(dir, fmt.Sprintf("pilot-api-%d", i), program, append([]string{"--log-level", "warn", "--etcd-endpoints", endpoints[1:]}, args...)...)
		if err != nil {
			return w, err
		}
		w.links = append(w.links, links)
		w.servers = append(w.servers, s)
	}
	return w, w.start(ctx)
}

func (w *world) start(ctx context.Context) error {
	for _, s := range w.servers {
		if err := s.Start(); err != nil {
			return err
		}
		// A setting that all share is that of the first one.
		if err := w.readyWithin(ctx, startLimit, s); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until all servers are ready.
func (w *world) ready(ctx context.Context, limit time.Duration) error {
	return w.readyWithin(ctx, limit, w.servers...)
}

func (w *world) readyWithin(ctx context.Context, limit time.Duration, servers ...*testbed.Server) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, s := range servers {
		if err := s.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) urls() []string {
	var urls []string
	for _, s := range w.servers {
		urls = append(urls, s.URL)
	}
	return urls
}

// stop ends the servers, so that nothing more is written.
func (w *world) stop() {
	for _, s := range w.servers {
		if err := s.Stop(); err != nil {
			w.complaints = append(w.complaints, err)
		}
	}
}

func (w *world) close() {
	for _, s := range w.servers {
		s.Kill()
	}
	for _, links := range w.links {
		for _, l := range links {
			l.Close()
		}
	}
	if w.collected != nil {
		w.collected.client.Close()
	}
	if w.etcd != nil {
		w.etcd.Close()
	}
}

// changes returns etcd's own record of all changes. The servers must have stopped.
func (w *world) changes(ctx context.Context) ([]consistency.Change, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if w.etcd != nil {
		return w.collected.finish(ctx)
	}
	e, err := embedded.Start(ctx, embedded.Options{Dir: w.data, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return collect(e.Client()).finish(ctx)
}
