package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// task is a part of the program that runs until its context ends.
type task = func(context.Context) error

// run starts the parts of the program in the order of the data flow: the storage, which is
// etcd and the cache that follows it; the access control and the publisher, which follow the
// cache; and the fronts for all clients. Each has a file: base.go, listeners.go, storage.go,
// accesscontrol.go, publisher.go and fronts.go. run returns when ctx ends or one of them
// fails.
func run(ctx context.Context, o options, log *slog.Logger) error {
	b, err := newBase(&o, log)
	if err != nil {
		return err
	}
	// Listen first, so that a port in use is an error before etcd starts.
	at, err := o.listenAll(b.certificates, b.signing)
	if err != nil {
		return err
	}
	defer at.close()
	s, err := openStorage(ctx, b, at)
	if err != nil {
		return err
	}
	defer s.close(log)
	at.local = o.openSockets(log)
	defer at.local.remove()
	c, err := newAccessControl(b, at, s)
	if err != nil {
		return err
	}
	p := newPublisher(ctx, b, s)
	fronts := newFronts(b, at, s, c, p)
	go tidyUp(ctx)
	err = serve(ctx, fronts, slices.Concat(c.followers, s.tasks(b), p.tasks(), []task{b.certificates.Run, b.keys.Run})...)
	log.Info("pilot-api has stopped")
	return err
}

// serve runs all fronts and followers until ctx ends. The followers outlive the fronts,
// so that requests in flight at the end still find a cache that is kept up to date.
// serve ends everything if a follower or a front fails.
func serve(ctx context.Context, fronts []task, followers ...task) error {
	group, running := errgroup.WithContext(context.WithoutCancel(ctx))
	behind, stop := context.WithCancel(running)
	for _, follow := range followers {
		group.Go(func() error { return unlessCanceled(follow(behind)) })
	}
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	defer context.AfterFunc(running, stopServing)()
	var open sync.WaitGroup
	for _, front := range fronts {
		open.Add(1)
		group.Go(func() error {
			defer open.Done()
			return unlessCanceled(front(serving))
		})
	}
	go func() {
		open.Wait()
		stop()
	}()
	return group.Wait()
}

func unlessCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
