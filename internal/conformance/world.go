package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// patience bounds one case, which takes some milliseconds.
const patience = 30 * time.Second

// ask builds a control plane over the objects, as the program does it, sends
// one GET and takes it down. With a fault, the store cannot be read.
func ask(ctx context.Context, settings *mesh.Settings, objects []*schema.Object, fault error, path string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	objs, err := fill(ctx, objects)
	if err != nil {
		return 0, nil, err
	}
	if fault != nil {
		objs = unreadable{objs, fault}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	view := cache.New(objs, cache.Options{Log: quiet})
	proxies := discovery.New(discovery.Options{Source: view, Settings: settings, Log: quiet})
	api := server.New(server.Options{Store: store.Strict(objs), Reads: view, Discovery: proxies, Log: quiet})

	running, stop := context.WithCancel(ctx)
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return view.Run(running) })
	group.Go(func() error { return proxies.Run(running) })
	group.Go(func() error { return api.Serve(running, listener) })

	var status int
	var body []byte
	if err = until(running, func() bool { return proxies.Ready() || view.Err() != nil }); err == nil {
		status, body, err = get(running, listener.Addr().String(), path)
	}
	stop()
	if end := group.Wait(); !errors.Is(end, context.Canceled) {
		err = errors.Join(err, end)
	}
	return status, body, err
}

// fill makes a store of the objects. They were validated when they were read,
// but for those that come from older times.
func fill(ctx context.Context, objects []*schema.Object) (store.Interface, error) {
	objs := memory.New()
	for _, obj := range objects {
		if _, err := objs.Create(ctx, obj); err != nil {
			return nil, err
		}
	}
	return objs, nil
}

// unreadable is a store that cannot be listed.
type unreadable struct {
	store.Interface
	fault error
}

func (u unreadable) List(context.Context, store.Scope, store.ListOptions) (*store.List, error) {
	return nil, u.fault
}

// until asks again and again: nobody tells when a server has come up.
func until(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not come up: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}

// get sends the path as it is recorded: an Envoy escapes nothing.
func get(ctx context.Context, address, path string) (int, []byte, error) {
	req := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "http", Host: address, Opaque: path},
		Close:  true,
	}).WithContext(ctx)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
