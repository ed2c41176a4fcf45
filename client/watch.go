package client

import (
	"context"

	"github.com/pilot-api/pilot-api/store"
)

// Watch keeps the contract of store.Reader. A watch that the server ends, for
// a restart or an idle proxy on the way, fails with ErrUnavailable: watch
// again from the last revision seen. A reader that stays behind slows down the
// server, which then cuts it off.
func (c *Client) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	if after == 0 {
		var err error
		if after, err = c.Revision(ctx); err != nil {
			return nil, err
		}
	}
	s := c.newStream(scope, after)
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// start opens the stream before it returns, so that what is wrong with the
// request is the caller's error.
func (s *stream) start(ctx context.Context) error {
	f, response, err := s.open(ctx)
	if err != nil {
		return err
	}
	go s.run(ctx, f, response)
	return nil
}
