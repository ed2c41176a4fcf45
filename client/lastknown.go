package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/pilot-api/pilot-api/store"
)

// unanswering is an answer of the server that its store does not answer.
type unanswering struct{ error }

func (e unanswering) Unwrap() error { return e.error }

// receiveLastKnown is receive for a request that failed. If it can be asked for the last
// known state, it returns the answer to that; otherwise it returns err.
func (c *Client) receiveLastKnown(ctx context.Context, r request, limit int64, read func(io.Reader) error, err error) error {
	at, parsed := url.Parse(r.url)
	if !c.opts.LastKnown || r.method != http.MethodGet || !errors.As(err, new(unanswering)) || parsed != nil {
		return err
	}
	q := at.Query()
	if q.Has("resourceVersion") || q.Has("continue") {
		return err
	}
	q.Set("resourceVersion", atLeast(store.Any))
	at.RawQuery = q.Encode()
	r.url, r.lastKnown = at.String(), true
	if failed := c.receiveOnce(ctx, r, limit, read); failed != nil {
		return err // Its words are those about the store.
	}
	return nil
}

// warnOfLastKnown passes on the server's words about the last known state, or says so
// itself. It does so once.
func (c *Client) warnOfLastKnown(warnings []string) {
	if !c.outdated.CompareAndSwap(false, true) {
		return
	}
	for _, text := range warnings {
		if strings.Contains(text, store.LastKnown) {
			c.opts.Warn(text)
			return
		}
	}
	c.opts.Warn("the store does not answer the server: " + store.LastKnown)
}
