package authn

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/internal/wholefile"
)

const (
	// followInterval is the time between two looks at a file.
	followInterval = time.Second
	// maxFollowed bounds a file, in bytes.
	maxFollowed = 16 << 20
)

// followedFile is the content of a file, read again when it changes. A change is taken when two
// looks find the same, because the first one may see half of it. A file that cannot be read or
// understood is reported, and its last good content stays in use.
type followedFile[T any] struct {
	flag, name string
	parse      func([]byte) (T, error)
	log        *slog.Logger

	value   atomic.Pointer[T]
	changes atomic.Uint64
	text    []byte // in use, or not understood
	seen    []byte // of the last look
	failed  error  // why the last text is not in use; nil if it is
	problem string // of the last look
}

// follow reads a file once. The error names the flag.
func follow[T any](flag, name string, parse func([]byte) (T, error), log *slog.Logger) (*followedFile[T], error) {
	f := &followedFile[T]{flag: flag, name: name, parse: parse, log: log}
	if err := f.look(); err != nil {
		return nil, err
	}
	return f, nil
}

// get returns the content in use.
func (f *followedFile[T]) get() T { return *f.value.Load() }

func (f *followedFile[T]) look() error {
	text, err := wholefile.ReadAtMost(f.name, maxFollowed)
	if err == nil && f.value.Load() != nil {
		settled := bytes.Equal(text, f.seen)
		if f.seen = text; !settled || bytes.Equal(text, f.text) {
			return f.failed
		}
	}
	var value T
	if err == nil {
		f.text = text
		value, err = f.parse(text)
	}
	if err != nil {
		f.failed = fmt.Errorf("%s %s: %w", f.flag, f.name, err)
		return f.failed
	}
	f.failed = nil
	f.value.Store(&value)
	f.changes.Add(1)
	return nil
}

// run looks at the file every second until ctx ends.
func (f *followedFile[T]) run(ctx context.Context) error {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		before := f.changes.Load()
		err := f.look()
		switch {
		case err != nil && err.Error() != f.problem:
			f.problem = err.Error()
			f.log.Warn("a file needs a look; its last good content stays in use", "problem", f.problem)
		case err == nil && (f.problem != "" || f.changes.Load() != before):
			f.problem = ""
			f.log.Info("a file is taken", "flag", f.flag, "file", f.name)
		}
	}
}
