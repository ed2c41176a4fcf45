package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// ErrFailed marks the errors of an embedded etcd that somebody must look at, for
// another start alone would end in the same way: a disk that is full or broken,
// data that cannot be read.
var ErrFailed = errors.New("the embedded etcd has failed")

// failure is an error that is ErrFailed too.
type failure struct{ error }

func (failure) Is(target error) bool { return target == ErrFailed }
func (f failure) Unwrap() error      { return f.error }

// ending is how an etcd ended. err is set before done is closed.
type ending struct {
	once   sync.Once
	done   chan struct{}
	failed chan struct{} // closed before done, unless the end was orderly
	err    error
}

func newEnding() *ending {
	return &ending{done: make(chan struct{}), failed: make(chan struct{})}
}

// stop says that etcd has ended in order.
func (e *ending) stop(err error) {
	e.once.Do(func() {
		e.err = err
		close(e.done)
	})
}

// fail says that etcd has lost a goroutine to a failure, such as a disk that
// cannot be written. Whoever waits for that goroutine waits for ever, so that
// nothing of this etcd may be waited for any more.
func (e *ending) fail(err error) {
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: the disk of the data folder is full. Make room there and start again: what was acknowledged is kept", err)
	}
	e.once.Do(func() {
		e.err = failure{err}
		close(e.failed)
		close(e.done)
	})
}

// unless is a step of the start, unless etcd fails in the meantime: then it may
// never end, as on a full disk.
func (e *ending) unless(ctx context.Context, step func() error) error {
	done := make(chan error, 1)
	go func() { done <- step() }()
	select {
	case err := <-done:
		return err
	case <-e.done:
		return whileStarting(e.err)
	case <-ctx.Done():
		return fmt.Errorf("it did not get ready: %w", ctx.Err())
	}
}

// startEtcd makes errors of etcd's panics: what it finds wrong in its data it
// does not return, but panics over, on this goroutine or on one of its own.
// After an error the process should end, for parts of etcd may be left.
func startEtcd(ctx context.Context, cfg *embed.Config, end *ending) (*embed.Etcd, error) {
	type result struct {
		etcd *embed.Etcd
		err  error
	}
	started := make(chan result, 1)
	go func() {
		r := result{}
		defer func() {
			if p := recover(); p != nil {
				r.err = damaged(p)
			}
			started <- r
		}()
		r.etcd, r.err = embed.StartEtcd(cfg)
		r.err = notStarted(r.err)
	}()
	select {
	case r := <-started:
		return r.etcd, r.err
	case <-end.done:
		return nil, whileStarting(end.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// notStarted tells data that cannot be read from a system that does not let it be
// read, such as by its modes. What etcd returns is of its log, and of little else.
func notStarted(err error) error {
	var system syscall.Errno
	if err == nil || errors.As(err, &system) && system != syscall.EIO {
		return err
	}
	return damaged(err)
}

// whileStarting tells data that cannot be read from a disk that cannot be
// written.
func whileStarting(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return damaged(err)
}

func damaged(why any) error {
	return failure{fmt.Errorf("the data cannot be read: %v; restore a snapshot or a copy of the folder, or name another one", why)}
}
