package client

import (
	"context"

	"github.com/pilot-api/pilot-api/store"
)

// Watch implements store.Reader. A watch fails with ErrUnavailable if the server ends
// it for a restart, or if a proxy on the way ends an idle one: watch again from the
// last revision received. A reader that falls behind slows down the server, which then
// ends the watch.
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

// start opens the stream before it returns, so that the caller gets the error of a
// wrong request.
func (s *stream) start(ctx context.Context) error {
	f, response, err := s.open(ctx)
	if err != nil {
		return err
	}
	go s.run(ctx, f, response)
	return nil
}
