package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/pilot-api/pilot-api/store"
)

const (
	jsonType = "application/json"
	yamlType = "application/yaml"

	// These bound how much of an answer is read, in bytes. A list of ten thousand rules has
	// about 10 MB. The memory that lists and documents take has bounds of its own
	// (weight.go).
	maxObjectAnswer   = 4 << 20
	maxListAnswer     = 512 << 20
	maxDocumentAnswer = 128 << 20
	maxErrorAnswer    = 1 << 20
)

var (
	// ErrNoPath means that the server answers but has nothing at the requested path.
	// The URL given to New may be wrong, or the server may have another version.
	ErrNoPath = errors.New("the server has no such path")
	// ErrNoAnswer means that the server was reached, but the connection broke or time
	// ran out before its answer. For a write the error is also store.ErrOutcomeUnknown,
	// for a read store.ErrUnavailable.
	ErrNoAnswer = errors.New("no answer came")
	// ErrDenied means that the request does not prove a user (401), or that the user has no
	// right to it (403). The text of the error has the server's reason.
	ErrDenied = errors.New("denied")
)

// request is one call. A nil body means no body.
type request struct {
	method      string
	url         string
	body        []byte
	contentType string
	lastKnown   bool // asks for the last known state, because there is no newer one
}

// call sends a request within Options.Timeout and returns the body of its answer, at
// most limit bytes.
func (c *Client) call(ctx context.Context, r request, limit int64) (body []byte, err error) {
	err = c.receive(ctx, r, limit, func(in io.Reader) (err error) {
		body, err = io.ReadAll(in)
		return err
	})
	return body, err
}

// receive sends a request within Options.Timeout, and calls read with at most limit bytes
// of the body of its answer.
func (c *Client) receive(ctx context.Context, r request, limit int64, read func(io.Reader) error) error {
	if err := c.receiveOnce(ctx, r, limit, read); err != nil {
		return c.receiveLastKnown(ctx, r, limit, read, err)
	}
	return nil
}

func (c *Client) receiveOnce(ctx context.Context, r request, limit int64, read func(io.Reader) error) error {
	if c.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.opts.Timeout)
		defer cancel()
	}
	resp, err := c.send(ctx, r)
	if err != nil {
		return r.doubt(err)
	}
	defer resp.Body.Close()
	return r.doubt(r.readBody(resp.Body, limit, read))
}

// doubt returns an error unchanged for a read. For a write, an error that leaves its
// outcome open becomes ErrOutcomeUnknown.
func (r request) doubt(err error) error {
	var e *store.Error
	if r.method == http.MethodGet || !errors.As(err, &e) {
		return err
	}
	if errors.Is(err, ErrNoAnswer) || errors.Is(err, errInBetween) || errors.Is(e.Kind, context.DeadlineExceeded) {
		unknown := *e
		unknown.Kind = store.ErrOutcomeUnknown
		return &unknown
	}
	return err
}

// errInBetween means that something between the client and the server answered in its
// place.
var errInBetween = errors.New("the body is no Status of a pilot-api server")

// sendOnce returns a successful answer with its body open, or the error of a failed one
// and when to send the request again, 0 for never.
func (c *Client) sendOnce(ctx context.Context, r request) (*http.Response, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return nil, 0, fmt.Errorf("%s %s: %w", r.method, r.url, err)
	}
	req.Header.Set("Accept", jsonType)
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	author := store.AuthorOf(ctx)
	if program := cmp.Or(author.UserAgent, c.opts.UserAgent); program != "" {
		req.Header.Set("User-Agent", program)
	}
	if author.User != "" {
		req.Header.Set("X-Remote-User", author.User)
	}
	var reached atomic.Bool
	trace := httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached.Store(true) }}
	resp, err := c.opts.HTTPClient.Do(req.WithContext(httptrace.WithClientTrace(ctx, &trace)))
	switch {
	case err != nil && resp != nil: // The answer was a redirect, which is not followed.
		return nil, 0, &store.Error{Kind: store.ErrUnavailable, Detail: "redirected: " + err.Error(), Cause: err}
	case err != nil && reached.Load():
		return nil, 0, noAnswer(err)
	case err != nil:
		return nil, 0, &store.Error{Kind: store.ErrUnavailable, Detail: "cannot reach the server: " + err.Error(), Cause: err}
	}
	succeeded := resp.StatusCode/100 == 2
	c.warn(resp.Header.Values("Warning"), r.lastKnown && succeeded)
	if succeeded {
		return resp, 0, nil
	}
	defer resp.Body.Close()
	again, err := answerError(r, resp)
	return nil, again, err
}

// warn passes on the warnings that can be parsed. A warning that cannot be parsed must
// not fail its request.
func (c *Client) warn(headers []string, lastKnown bool) {
	warnings, _ := utilnet.ParseWarningHeaders(headers)
	var texts []string
	for _, w := range warnings {
		if w.Code == 299 {
			texts = append(texts, w.Text)
		}
	}
	if lastKnown {
		c.warnOfLastKnown(texts)
	}
	for _, text := range texts {
		if !lastKnown || !strings.Contains(text, store.LastKnown) {
			c.opts.Warn(text)
		}
	}
}

// answerError returns the error of a failed answer. A body that is no Status comes from
// something between the client and the server, or from another server. It may have
// forwarded a write, so only reads are retried on its answer.
func answerError(r request, resp *http.Response) (again time.Duration, err error) {
	var body []byte
	err = r.readBody(resp.Body, maxErrorAnswer, func(in io.Reader) (err error) {
		body, err = io.ReadAll(in)
		return err
	})
	if err != nil {
		return 0, err
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" {
		if isNoPath(&status) {
			return 0, fmt.Errorf("%w: %s", ErrNoPath, status.Message)
		}
		err := fromStatus(&status)
		if resp.StatusCode != http.StatusTooManyRequests && errors.Is(err, store.ErrUnavailable) {
			err = unanswering{err}
		}
		return retryAfter(resp), err
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	text = text[:min(len(text), 200)]
	err = fmt.Errorf("%s %s: %s, and %w: %q", r.method, r.url, resp.Status, errInBetween, text)
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		err = &store.Error{Kind: store.ErrUnavailable, Detail: err.Error(), Cause: err}
	}
	if r.method == http.MethodGet {
		again = retryAfter(resp)
	}
	return again, err
}

// fromStatus is store.FromStatus that also tells ErrDenied apart.
func fromStatus(status *metav1.Status) error {
	err := store.FromStatus(status)
	if err != nil && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden) {
		return denied{err}
	}
	return err
}

// denied is an error that is also ErrDenied.
type denied struct{ error }

func (d denied) Is(target error) bool { return target == ErrDenied }
func (d denied) Unwrap() error        { return d.error }

// isNoPath distinguishes a path that is not found from an object that is not found:
// only an object is named.
func isNoPath(status *metav1.Status) bool {
	return status.Reason == metav1.StatusReasonNotFound && status.Details == nil
}

// readBody calls read with at most limit bytes of a body. If the body could not be read,
// the error says so, whatever read makes of it.
func (r request) readBody(body io.ReadCloser, limit int64, read func(io.Reader) error) error {
	in := &bodyReader{r: http.MaxBytesReader(nil, body, limit)}
	err := read(in)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(in.failed, &tooLarge):
		return fmt.Errorf("the answer to %s %s is larger than %d bytes", r.method, r.url, limit)
	case in.failed != nil:
		return noAnswer(in.failed)
	}
	return err
}

// bodyReader remembers why a body could not be read.
type bodyReader struct {
	r      io.Reader
	failed error
}

func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && err != io.EOF {
		b.failed = err
	}
	return n, err
}

func noAnswer(err error) error {
	return &store.Error{Kind: store.ErrUnavailable, Detail: "the connection broke: " + err.Error(), Cause: fmt.Errorf("%w: %w", ErrNoAnswer, err)}
}
