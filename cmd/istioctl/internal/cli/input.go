package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// MaxInput bounds the size of one file, HTTP response or standard input, in bytes.
	MaxInput = 64 << 20
	// StdinFlag is the name of standard input in flags, and StdinName the one in messages.
	StdinFlag, StdinName = "-", "stdin"
)

// ReadFile returns the content of a file, or of standard input for StdinFlag. It is at most
// MaxInput bytes. If ctx ends before, for example while no other program writes, ReadFile
// returns the reason.
func (s *Session) ReadFile(ctx context.Context, name string) ([]byte, error) {
	if name == StdinFlag {
		return s.Receive(ctx, StdinName, func() (io.ReadCloser, error) { return io.NopCloser(s.Stdin), nil })
	}
	return s.Receive(ctx, name, func() (io.ReadCloser, error) { return os.Open(name) })
}

// Receive is ReadFile for the reader that open returns. The name is for messages. After the
// end of ctx, the program must not use the rest of the input.
func (s *Session) Receive(ctx context.Context, name string, open func() (io.ReadCloser, error)) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() { // Neither the open nor a read of a pipe can be interrupted.
		text, err := readAll(name, open)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		if r.err != nil && ctx.Err() != nil {
			return nil, s.Fail(ctx, r.err)
		}
		return r.text, r.err
	case <-ctx.Done():
		return nil, s.Fail(ctx, ctx.Err())
	}
}

func readAll(name string, open func() (io.ReadCloser, error)) ([]byte, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, MaxInput+1))
	var named *os.PathError
	switch {
	case errors.As(err, &named):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(text) > MaxInput:
		return nil, fmt.Errorf("%s: more than %d MiB", name, MaxInput>>20)
	}
	return text, nil
}
