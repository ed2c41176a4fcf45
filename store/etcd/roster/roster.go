// Package roster stores in etcd what servers know about their proxies. The servers share a
// store. The package stores pages of text and does not interpret them. A server writes its
// own pages, and reads the pages of all servers.
package roster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Roster has the pages of all servers, as this server last saw them. Make it with New. All
// methods except Put are safe for concurrent use.
//
//	<prefix>/proxies/<server>/<page>
type Roster struct {
	client *clientv3.Client
	prefix string
	keep   time.Duration
	log    *slog.Logger
	lease  clientv3.LeaseID // of this server's pages
	leased time.Time        // when it was last confirmed

	mu    sync.Mutex
	pages map[string]map[int]string // by server
}

// New returns the roster under a prefix. After a server is gone, its pages stay for the
// time keep.
func New(client *clientv3.Client, prefix string, keep time.Duration, log *slog.Logger) *Roster {
	return &Roster{client: client, prefix: Root(prefix), keep: keep, log: log, pages: map[string]map[int]string{}}
}

// Root returns the common prefix of the keys of all pages.
func Root(prefix string) string { return strings.TrimRight(prefix, "/") + "/proxies/" }

// Load reads all pages, and returns their revision.
func (r *Roster) Load(ctx context.Context) (revision int64, err error) {
	found, err := r.client.Get(ctx, r.prefix, clientv3.WithPrefix())
	if err != nil {
		return 0, fmt.Errorf("read the roster of proxies: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages = map[string]map[int]string{}
	for _, kv := range found.Kvs {
		r.setLocked(string(kv.Key), string(kv.Value), true)
	}
	return found.Header.Revision, nil
}

// Follow keeps the pages up to date until ctx ends, starting after a revision. If changes
// are missing, it reads all pages again.
func (r *Roster) Follow(ctx context.Context, revision int64) error {
	for {
		if revision > 0 {
			r.watch(ctx, revision+1)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryAfter):
		}
		var err error
		if revision, err = r.Load(ctx); err != nil && ctx.Err() == nil {
			r.log.Debug("the roster of proxies is not known", "error", err)
		}
	}
}

// retryAfter is how long after a failure etcd is asked again.
const retryAfter = time.Second

// watch returns when the watch ends.
func (r *Roster) watch(ctx context.Context, from int64) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for batch := range r.client.Watch(ctx, r.prefix, clientv3.WithPrefix(), clientv3.WithRev(from)) {
		if batch.Err() != nil {
			return
		}
		r.mu.Lock()
		for _, e := range batch.Events {
			r.setLocked(string(e.Kv.Key), string(e.Kv.Value), e.Type == clientv3.EventTypePut)
		}
		r.mu.Unlock()
	}
}

func (r *Roster) setLocked(key, text string, there bool) {
	name, number, ok := cutLast(strings.TrimPrefix(key, r.prefix))
	page, err := strconv.Atoi(number)
	if !ok || err != nil {
		return
	}
	if !there {
		delete(r.pages[name], page)
		return
	}
	if r.pages[name] == nil {
		r.pages[name] = map[int]string{}
	}
	r.pages[name][page] = text
}

// cutLast cuts at the last slash: names of servers have some.
func cutLast(key string) (name, page string, ok bool) {
	at := strings.LastIndexByte(key, '/')
	if at < 0 {
		return "", "", false
	}
	return key[:at], key[at+1:], true
}

// Pages returns the pages of all servers, by their names.
func (r *Roster) Pages() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]string{}
	for name, pages := range r.pages {
		for _, text := range pages {
			all[name] = append(all[name], text)
		}
	}
	return all
}

// Put writes a page of a server; an empty text removes it.
func (r *Roster) Put(ctx context.Context, server string, page int, text string) error {
	key := r.prefix + server + "/" + strconv.Itoa(page)
	if text == "" {
		_, err := r.client.Delete(ctx, key)
		return err
	}
	if err := r.confirm(ctx); err != nil {
		return fmt.Errorf("lease of the roster of proxies: %w", err)
	}
	_, err := r.client.Put(ctx, key, text, clientv3.WithLease(r.lease))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		r.lease = clientv3.NoLease
	}
	return err
}

// confirm prolongs the life of this server's pages.
func (r *Roster) confirm(ctx context.Context) error {
	if r.lease != clientv3.NoLease && time.Since(r.leased) < r.keep/4 {
		return nil
	}
	if r.lease != clientv3.NoLease {
		_, err := r.client.KeepAliveOnce(ctx, r.lease)
		if err == nil {
			r.leased = time.Now()
			return nil
		}
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
	}
	granted, err := r.client.Grant(ctx, int64(r.keep/time.Second)+1)
	if err != nil {
		return err
	}
	r.lease, r.leased = granted.ID, time.Now()
	return nil
}
