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

// ask starts a control plane over the objects, sends one GET and stops it. With a fault,
// the store cannot be read.
func ask(ctx context.Context, settings *mesh.Settings, objects []*schema.Object, fault error, path string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	objs, err := fill(ctx, objects)
	if err != nil {
		return 0, nil, err
	}
	if fault != nil {
		objs = unreadable{objs, fault}
	}
	w, err := start(ctx, settings, objs)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.settled(); err != nil {
		return 0, nil, err
	}
	return w.get(path)
}

// world is a running control plane, assembled as in the program.
type world struct {
	address string
	view    *cache.Cache
	proxies *discovery.Publisher

	ctx     context.Context // ends with the first part that fails
	cancel  context.CancelFunc
	running *errgroup.Group
}

func start(ctx context.Context, settings *mesh.Settings, objs store.Interface) (*world, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	w := &world{address: listener.Addr().String()}
	w.view = cache.New(objs, cache.Options{Log: quiet})
	w.proxies = discovery.New(discovery.Options{Source: w.view, Settings: settings, Log: quiet})
	api := server.New(server.Options{Store: store.Strict(objs), Reads: w.view, Discovery: w.proxies, Log: quiet})

	ctx, w.cancel = context.WithCancel(ctx)
	w.running, w.ctx = errgroup.WithContext(ctx)
	w.running.Go(func() error { return w.view.Run(w.ctx) })
	w.running.Go(func() error { return w.proxies.Run(w.ctx) })
	w.running.Go(func() error { return api.Serve(w.ctx, listener) })
	return w, nil
}

// stop returns when everything has ended, with the errors.
func (w *world) stop() error {
	w.cancel()
	if err := w.running.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// settled waits until there is an answer, or a known reason why there is none.
func (w *world) settled() error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !w.proxies.Ready() && w.view.Err() == nil {
		select {
		case <-w.ctx.Done():
			return fmt.Errorf("the server does not come up: %w", context.Cause(w.ctx))
		case <-tick.C:
		}
	}
	return nil
}

// get requests the path exactly as recorded, because an Envoy escapes nothing.
func (w *world) get(path string) (int, []byte, error) {
	req := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "http", Host: w.address, Opaque: path},
		Close:  true,
	}).WithContext(w.ctx)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// fill returns a store with the objects. They were validated when they were read, except
// those from older times.
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
