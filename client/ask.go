package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/pilot-api/pilot-api/schema"
)

// registry is the path of everything that is not an object.
const (
	registryVersion = "registry.istio.io/v1"
	registry        = "/apis/" + registryVersion + "/"
)

// ask sends a GET of a path and decodes the JSON answer, as exchange does.
func (c *Client) ask(ctx context.Context, path string, query url.Values, into any, check func() error) error {
	return c.exchange(ctx, request{method: http.MethodGet, url: c.at(path, query)}, into, check)
}

// at returns the URL of a path on the server.
func (c *Client) at(path string, query url.Values) string {
	if len(query) == 0 {
		return c.base + path
	}
	return c.base + path + "?" + query.Encode()
}

// objectQuery returns the query that names one object.
func objectQuery(key schema.Key) url.Values {
	return url.Values{"object": {key.Kind + "/" + key.Namespace + "/" + key.Name}}
}

// exchange sends a request and decodes the JSON answer. Another server may answer with any
// JSON, such as {} or null, so check returns an error if the decoded answer lacks what every
// answer of a pilot-api server has.
func (c *Client) exchange(ctx context.Context, r request, into any, check func() error) error {
	return c.receive(ctx, r, maxDocumentAnswer, func(in io.Reader) error {
		body, err := io.ReadAll(&weighedReader{r: in, left: c.maxWeight / 2})
		switch {
		case errors.Is(err, errTooHeavy):
			return fmt.Errorf("the answer to %s %s: %w", r.method, r.url, err)
		case err != nil:
			return err
		}
		if err := json.Unmarshal(body, into); err != nil {
			return fmt.Errorf("decode the server's answer to %s %s: %w", r.method, r.url, err)
		}
		if err := check(); err != nil {
			return fmt.Errorf("the answer to %s %s is not one of a pilot-api server: %w", r.method, r.url, err)
		}
		return nil
	})
}

// isReport returns an error if the revision of an answer is missing.
func isReport(revision int64) error {
	if revision <= 0 {
		return errors.New("it has no revision")
	}
	return nil
}

// member returns an error if a member of an answer is missing.
func member(name string, has bool) error {
	if !has {
		return fmt.Errorf("it has no %s", name)
	}
	return nil
}
