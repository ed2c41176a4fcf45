// Package document keeps texts in etcd that all servers of a store share and follow. The
// package does not interpret them.
package document

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Document is a text under a name. Make it with New. It is safe for concurrent use.
//
//	<prefix>/<name>
type Document struct {
	client *clientv3.Client
	key    string
	log    *slog.Logger
}

// New returns the document with a name under a prefix.
func New(client *clientv3.Client, prefix, name string, log *slog.Logger) *Document {
	return &Document{client, strings.TrimRight(prefix, "/") + "/" + name, log}
}

// Update replaces the text with the result of change, unless that is the same text. change
// gets "" if there is no text yet. It is called again if another server was faster. An error
// of change ends Update, and nothing is written. Update returns the text that is stored then.
func (d *Document) Update(ctx context.Context, change func(text string) (string, error)) (string, error) {
	for {
		text, revision, _, err := d.get(ctx)
		if err != nil {
			return "", err
		}
		next, err := change(text)
		if err != nil || next == text {
			return text, err
		}
		resp, err := d.client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(d.key), "=", revision)).
			Then(clientv3.OpPut(d.key, next)).Commit()
		if err != nil {
			return "", fmt.Errorf("write %s to etcd: %w", d.key, err)
		}
		if resp.Succeeded {
			return next, nil
		}
	}
}

// get returns the text, its revision (0 if there is none) and the revision of the answer.
func (d *Document) get(ctx context.Context) (text string, revision, at int64, err error) {
	resp, err := d.client.Get(ctx, d.key)
	if err != nil {
		return "", 0, 0, fmt.Errorf("read %s from etcd: %w", d.key, err)
	}
	if len(resp.Kvs) == 0 {
		return "", 0, resp.Header.Revision, nil
	}
	return string(resp.Kvs[0].Value), resp.Kvs[0].ModRevision, resp.Header.Revision, nil
}

// retryAfter is how long after a failure etcd is asked again.
const retryAfter = time.Second

// Follow calls changed with the text, which is "" if there is none, and after each change of
// it, until ctx ends. It returns ctx's error. While etcd does not answer, the last text
// stays. changed is not called concurrently.
func (d *Document) Follow(ctx context.Context, changed func(text string)) error {
	known, last := false, ""
	tell := func(text string) {
		if !known || text != last {
			known, last = true, text
			changed(text)
		}
	}
	for {
		text, _, at, err := d.get(ctx)
		if err == nil {
			tell(text)
			d.watch(ctx, at+1, tell)
		} else if ctx.Err() == nil {
			d.log.Debug("a document of the servers is not known", "key", d.key, "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryAfter):
		}
	}
}

// watch returns when the watch ends.
func (d *Document) watch(ctx context.Context, from int64, tell func(string)) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for batch := range d.client.Watch(ctx, d.key, clientv3.WithRev(from)) {
		if batch.Err() != nil {
			return
		}
		for _, e := range batch.Events {
			tell(string(e.Kv.Value)) // A deletion has no value.
		}
	}
}
