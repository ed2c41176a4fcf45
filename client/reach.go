package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/pilot-api/pilot-api/explain"
)

// Reach returns who can call whom. from and to select callers and services as in the API; ""
// selects all. limit bounds the answer; 0 is the default of the server. It reflects everything that
// was written before the call.
func (c *Client) Reach(ctx context.Context, from, to string, limit int) (*explain.Reach, error) {
	query := url.Values{}
	for name, value := range map[string]string{"from": from, "to": to} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var found explain.Reach
	if err := c.ask(ctx, registry+"reach", query, &found, func() error { return isReport(found.Revision) }); err != nil {
		return nil, err
	}
	return &found, nil
}
