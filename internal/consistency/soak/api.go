package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// valueKey is the annotation that identifies a write.
const valueKey = "consistency/value"

// document is the part of an object that these clients read.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace       string            `json:"namespace"`
		Name            string            `json:"name"`
		ResourceVersion string            `json:"resourceVersion,omitempty"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec,omitempty"`
}

func (d *document) version(kind string) consistency.Version {
	revision, _ := strconv.ParseInt(d.Metadata.ResourceVersion, 10, 64)
	return consistency.Version{
		Key:      schema.Key{Kind: kind, Namespace: d.Metadata.Namespace, Name: d.Metadata.Name},
		Revision: revision, Value: d.Metadata.Annotations[valueKey],
	}
}

// specs of the kinds that are written.
var specs = map[string]string{
	"RouteRule":         `{"destination":{"name":"s"}}`,
	"DestinationPolicy": `{"destination":{"name":"s"},"loadBalancing":{"name":"RANDOM"}}`,
}

func body(key schema.Key, value string, expect int64) []byte {
	return manifest(key, value, expect, specs[key.Kind])
}

func path(scope store.Scope) string {
	p := "/apis/" + scope.Kind.Group + "/" + scope.Kind.Version
	if scope.Namespace != "" {
		p += "/namespaces/" + scope.Namespace
	}
	p += "/" + scope.Kind.Plural
	if scope.Name != "" {
		p += "/" + scope.Name
	}
	return p
}

func scopeOf(key schema.Key) store.Scope {
	kind, _ := schema.KindByName(key.Kind)
	return store.Scope{Kind: kind, Namespace: key.Namespace, Name: key.Name}
}

// perform sends an operation and sets its result.
func perform(ctx context.Context, c *http.Client, base string, r *record, op consistency.Operation) consistency.Operation {
	op.Call = r.now()
	status, answer, err := exchange(ctx, c, base, &op)
	op.Return = r.now()
	take(&op, status, answer, err)
	for next := continueOf(answer); op.Outcome == consistency.OK && next != ""; next = continueOf(answer) {
		status, answer, err = send(ctx, c, http.MethodGet, base+page(&op, next), "", nil)
		takePage(&op, r.now(), status, answer, err)
	}
	r.operation(op)
	return op
}

// take sets the result from an answer.
func take(op *consistency.Operation, status int, answer []byte, err error) {
	switch {
	case err != nil:
		op.Outcome, op.Detail = consistency.Unknown, err.Error()
		if unsent(err) {
			op.Outcome = consistency.Refused
		}
	case status < 300:
		op.Outcome = consistency.OK
		if err := read(op, answer); err != nil {
			op.Outcome, op.Detail = consistency.Unexpected, err.Error()
		}
	default:
		op.Outcome, op.Detail = refusal(status, answer)
		op.Failed = failedStep(answer)
		if op.Outcome != consistency.Unexpected && op.Failed >= max(1, len(op.Steps)) {
			op.Outcome, op.Detail = consistency.Unexpected, "there is no such operation: "+string(answer)
		}
	}
}

// unsent reports whether a request failed before any of it was sent.
func unsent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

func exchange(ctx context.Context, c *http.Client, base string, op *consistency.Operation) (int, []byte, error) {
	method, target, contentType, text := request(op)
	return send(ctx, c, method, base+target, contentType, text)
}

func send(ctx context.Context, c *http.Client, method, target, contentType string, text []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	if text != nil {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

func request(op *consistency.Operation) (method, target, contentType string, text []byte) {
	method, contentType = http.MethodGet, "application/json"
	switch one := scopeOf(op.Key); op.Verb {
	case consistency.Create:
		one.Name = ""
		method, target, text = http.MethodPost, path(one), body(op.Key, op.Value, 0)
	case consistency.Update:
		method, target, text = http.MethodPut, path(one), body(op.Key, op.Value, op.Expect)
	case consistency.Patch:
		method, target, contentType = http.MethodPatch, path(one), "application/merge-patch+json"
		text = mergePatch(op.Value, op.Expect)
	case consistency.Delete:
		method, target = http.MethodDelete, path(one)
		if op.Expect != 0 {
			text = fmt.Appendf(nil, `{"preconditions":{"resourceVersion":"%d"}}`, op.Expect)
		}
	case consistency.Txn:
		method, target, text = http.MethodPost, transactionsPath, transaction(op.Steps)
	case consistency.Get, consistency.List:
		if op.Verb == consistency.List {
			one = op.Scope
		}
		target = path(one) + "?" + reading(op).Encode()
	}
	return method, target, contentType, text
}

func mergePatch(value string, expect int64) []byte {
	precondition := ""
	if expect != 0 {
		precondition = fmt.Sprintf(`"resourceVersion":"%d",`, expect)
	}
	return fmt.Appendf(nil, `{"metadata":{%s"annotations":{%q:%q}}}`, precondition, valueKey, value)
}

// reading returns the parameters for the freshness of a read and for its page size.
func reading(op *consistency.Operation) url.Values {
	q := url.Values{}
	switch {
	case op.Exact != 0:
		q.Set("resourceVersionMatch", "Exact")
		q.Set("resourceVersion", strconv.FormatInt(op.Exact, 10))
	case op.AtLeast == store.Any:
		q.Set("resourceVersion", "0")
	case op.AtLeast != 0:
		q.Set("resourceVersion", strconv.FormatInt(op.AtLeast, 10))
	}
	if op.Limit != 0 {
		q.Set("limit", strconv.Itoa(op.Limit))
	}
	return q
}

// read sets the results of a successful read.
func read(op *consistency.Operation, answer []byte) (err error) {
	switch op.Verb {
	case consistency.List:
		op.Revision, err = readList(op, answer)
		return err
	case consistency.Txn:
		return readTransaction(op, answer)
	}
	var d document
	if err := json.Unmarshal(answer, &d); err != nil {
		return err
	}
	v := d.version(op.Key.Kind)
	op.Revision = v.Revision
	if op.Verb == consistency.Get {
		op.Got = v.Value
	}
	if v.Key != op.Key {
		return fmt.Errorf("the answer is about %s", v)
	}
	return nil
}

func refusal(status int, answer []byte) (consistency.Outcome, string) {
	var s struct{ Reason, Message string }
	_ = json.Unmarshal(answer, &s)
	switch {
	case status == http.StatusNotFound && s.Reason == "NotFound":
		return consistency.NotFound, ""
	case status == http.StatusConflict && s.Reason == "AlreadyExists":
		return consistency.Exists, ""
	case status == http.StatusConflict && s.Reason == "Conflict":
		return consistency.Conflict, ""
	case status == http.StatusGone:
		return consistency.Gone, ""
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return consistency.Refused, fmt.Sprintf("%d %s", status, s.Message)
	case status == http.StatusGatewayTimeout:
		return consistency.Unknown, fmt.Sprintf("%d %s", status, s.Message)
	}
	return consistency.Unexpected, fmt.Sprintf("%d %s", status, answer)
}
