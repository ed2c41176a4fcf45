package embedded

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap/zapcore"
)

// ErrFailed marks the errors of an embedded etcd that need an operator, such as a full
// or broken disk or data that cannot be read. A restart alone would fail in the same
// way.
var ErrFailed = errors.New("the embedded etcd has failed")

// failure is an error that also matches ErrFailed.
type failure struct{ error }

func (failure) Is(target error) bool { return target == ErrFailed }
func (f failure) Unwrap() error      { return f.error }

// ending says how an etcd ended. err is set before done is closed.
type ending struct {
	once   sync.Once
	done   chan struct{}
	failed chan struct{} // closed before done, unless the end was orderly
	err    error
}

func newEnding() *ending {
	return &ending{done: make(chan struct{}), failed: make(chan struct{})}
}

// stop records that etcd ended in order.
func (e *ending) stop(err error) {
	e.once.Do(func() {
		e.err = err
		close(e.done)
	})
}

// fail records that etcd has lost a goroutine to a failure, such as a disk that cannot
// be written. Waiting for that goroutine would never end, so nothing may wait for this
// etcd any more.
func (e *ending) fail(err error) {
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: the disk of the data folder is full. Make room there and start again: acknowledged writes are kept", err)
	}
	e.once.Do(func() {
		e.err = failure{err}
		close(e.failed)
		close(e.done)
	})
}

// unless runs a step of the start and returns early if etcd fails meanwhile. The step
// may then never end, for example on a full disk.
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

// startEtcd converts etcd's panics into errors. etcd panics over damaged data, on this
// goroutine or on one of its own. After an error the process should end, because parts
// of etcd may still run.
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

// notStarted distinguishes unreadable data from a system that denies reading, for
// example by file modes. Almost all errors that etcd returns here are about its log.
func notStarted(err error) error {
	var system syscall.Errno
	if err == nil || errors.As(err, &system) && system != syscall.EIO {
		return err
	}
	return damaged(err)
}

// whileStarting distinguishes unreadable data from a full disk.
func whileStarting(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return damaged(err)
}

func damaged(why any) error {
	return failure{fmt.Errorf("the data cannot be read: %v; restore a snapshot or a copy of the folder, or name another one", why)}
}

// fatalHook handles log entries with which etcd would panic or end the process. It ends
// only the goroutine and reports the failure to end.
type fatalHook struct{ end *ending }

func (w fatalHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(entry.Message)
	for _, f := range fields {
		if cause, ok := f.Interface.(error); ok {
			err = fmt.Errorf("%w: %w", err, cause)
		}
	}
	w.end.fail(err)
	runtime.Goexit()
}
