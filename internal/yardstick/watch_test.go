package yardstick_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/internal/yardstick"
)

// watchers wait together for events, each of which all are told.
type watchers struct {
	n    int64
	told atomic.Int64
	all  chan struct{} // all were told of one
}

func newWatchers(n int) *watchers { return &watchers{n: int64(n), all: make(chan struct{}, 1)} }

func (w *watchers) tell() {
	if w.told.Add(1)%w.n == 0 {
		w.all <- struct{}{}
	}
}

// eventsFor has a change made whenever all have been told of the one before, and is
// how many events there are in a second and how long busy is busy with each.
func (w *watchers) eventsFor(d time.Duration, busy func() time.Duration, change func() error) (rate float64, each time.Duration, err error) {
	begin, worked := time.Now(), busy()
	events := int64(0)
	for ; time.Since(begin) < d; events += w.n {
		if err := change(); err != nil {
			return 0, 0, err
		}
		select {
		case <-w.all:
		case <-time.After(time.Minute):
			return 0, 0, fmt.Errorf("only %d of %d events have come", w.told.Load(), events+w.n)
		}
	}
	return float64(events) / time.Since(begin).Seconds(), (busy() - worked) / time.Duration(events), nil
}

// watch has so many connections watch a namespace with one object.
func (a *api) watch(space string, n int) (w *watchers, change func() error, end func(), err error) {
	var conns []*yardstick.Conn
	hangUp := func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}
	defer func() {
		if err != nil {
			hangUp()
		}
	}()
	if err := a.fill(space, 1); err != nil {
		return nil, nil, nil, err
	}
	dial := func() (*yardstick.Conn, error) {
		c, err := yardstick.Dial(a.address)
		if err == nil {
			conns = append(conns, c)
		}
		return c, err
	}
	writer, err := dial()
	if err != nil {
		return nil, nil, nil, err
	}
	w = newWatchers(n)
	for range n {
		c, err := dial()
		if err != nil {
			return nil, nil, nil, err
		}
		events, err := c.Stream(a.path(space) + "?watch=true")
		if err != nil {
			return nil, nil, nil, err
		}
		// The object that is there, before any is changed.
		if _, err := events.ReadSlice('\n'); err != nil {
			return nil, nil, nil, err
		}
		go follow(events, w)
	}
	i := 0
	return w, func() error {
		i++
		_, err := writer.Do("PUT", a.object(space, nameOf(0)), yardstick.Rule(space, nameOf(0), i))
		return err
	}, hangUp, nil
}

func follow(events *bufio.Reader, w *watchers) {
	for {
		line, err := events.ReadSlice('\n')
		if err != nil {
			return
		}
		if bytes.HasPrefix(line, []byte(`{"type":"MODIFIED"`)) {
			w.tell()
		}
	}
}

// watchRaw is watch of etcd itself, over its few connections.
func (w *world) watchRaw(ctx context.Context, space string, n int) (all *watchers, change func() error, end func()) {
	ctx, end = context.WithCancel(ctx)
	key := "raw/" + space + "/o-0"
	all = newWatchers(n)
	for i := range n {
		events := w.raw.Client(i).Watch(ctx, key, clientv3.WithCreatedNotify())
		<-events
		go func() {
			for range events {
				all.tell()
			}
		}()
	}
	i := 0
	return all, func() error {
		i++
		_, err := w.raw.Client(0).Put(ctx, key, string(yardstick.Rule(space, "o-0", i)))
		return err
	}, end
}
