package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/store"
)

// watcher follows one scope over HTTP, from stream to stream.
type watcher struct {
	name     string
	scope    store.Scope
	random   *rand.Rand
	pace     float64
	http     *http.Client
	servers  []string
	record   *record
	plain    bool          // Resumes after the last event, as Kubernetes clients do.
	browser  bool          // Follows server-sent events.
	restless bool          // Hangs up now and then.
	slow     time.Duration // Waits this long after each line, until hurry.
	hurry    <-chan struct{}

	until   int64 // Calls reached at this revision; 0 for never.
	reached func()

	watch *consistency.Watch
	seen  atomic.Int64
	place int64 // Where it resumes.
}

// comeBackLimit is the time that a watcher has to catch up, and a server to work again,
// without further faults.
const comeBackLimit = 2 * time.Minute

var errExpired = errors.New("what comes after is no longer kept")

func (w *watcher) run(ctx context.Context, after int64) {
	w.begin(after)
	for ctx.Err() == nil {
		err := w.stream(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errExpired):
			w.frame(consistency.Frame{Type: consistency.Expired, Revision: w.seen.Load()})
			w.relist(ctx)
		default:
			w.frame(consistency.Frame{Type: consistency.Broken, Revision: w.seen.Load(), Detail: fmt.Sprint(err)})
		}
		w.pause(ctx, 200*time.Millisecond)
	}
}

// upTo draws a time to wait.
func (w *watcher) upTo(most time.Duration) time.Duration {
	return time.Duration(w.pace * w.random.Float64() * float64(most))
}

func (w *watcher) pause(ctx context.Context, most time.Duration) { sleep(ctx, w.upTo(most)) }

// dawdle delays the reading, unless all others have ended.
func (w *watcher) dawdle() {
	if w.slow == 0 {
		return
	}
	select {
	case <-time.After(w.slow):
	case <-w.hurry:
	}
}

// begin starts a new record of what is received.
func (w *watcher) begin(after int64) {
	w.watch = &consistency.Watch{Name: w.name, Scope: w.scope, Plain: w.plain}
	w.record.watch(w.watch)
	w.seen.Store(after)
	w.place = after
}

func (w *watcher) frame(f consistency.Frame) {
	f.At = w.record.now()
	w.watch.Frames = append(w.watch.Frames, f)
}

// relist lists anew, as a client does whose revision is no longer kept.
func (w *watcher) relist(ctx context.Context) {
	for ctx.Err() == nil {
		if list := w.list(ctx); list.Outcome == consistency.OK {
			w.begin(list.Revision)
			return
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

func (w *watcher) list(ctx context.Context) consistency.Operation {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	return perform(ctx, w.http, pick(w.random, w.servers), w.record, consistency.Operation{
		Client: w.name, Verb: consistency.List, Scope: w.scope,
	})
}

// stream reads one response, from the last place.
func (w *watcher) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.restless {
		timer := time.AfterFunc(w.upTo(4*time.Second), cancel)
		defer timer.Stop()
	}
	resp, err := w.open(ctx, pick(w.random, w.servers))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	if w.browser {
		return w.readEvents(lines)
	}
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		if err := w.line(line); err != nil {
			return err
		}
		w.dawdle()
	}
}

func (w *watcher) open(ctx context.Context, server string) (*http.Response, error) {
	w.seen.Store(w.place)
	w.frame(consistency.Frame{Type: consistency.Began, Revision: w.place, Detail: server})
	req, err := watchRequest(ctx, server+path(w.scope), w.place, !w.plain)
	if err != nil {
		return nil, err
	}
	if w.browser {
		asBrowser(req, w.place)
	}
	return openWatch(w.http, req)
}

func (w *watcher) line(text []byte) error {
	var f struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	if f.Type == store.ErrorFrame {
		var status struct{ Code int }
		if err := json.Unmarshal(f.Object, &status); err == nil && status.Code == http.StatusGone {
			return errExpired
		}
		return errors.New(string(f.Object))
	}
	var d document
	if err := json.Unmarshal(f.Object, &d); err != nil {
		return err
	}
	v := d.version(w.scope.Kind.Kind)
	frame := consistency.Frame{Type: consistency.FrameType(f.Type), Revision: v.Revision}
	if frame.Type != consistency.Bookmark {
		frame.Key, frame.Value = v.Key, v.Value
		w.record.events.Add(1)
	}
	w.told(frame)
	return nil
}

func (w *watcher) told(f consistency.Frame) {
	w.frame(f)
	w.move(f)
	w.record.learn(f.Revision)
	if w.until != 0 && w.seen.Load() >= w.until {
		w.reached()
	}
}

// move updates where the watcher resumes. A bookmark, or an event of the next revision,
// shows that a transaction has ended. A browser uses only ids.
func (w *watcher) move(f consistency.Frame) {
	seen := w.seen.Load()
	if f.Revision > seen && !w.browser {
		w.place = seen
	}
	w.seen.Store(max(seen, f.Revision))
	if f.Type == consistency.Bookmark || w.plain {
		w.place = w.seen.Load()
	}
}

// hop watches repeatedly from an old revision or from a list, up to the newest revision
// at its start. Each hop has a record of its own.
func (w *watcher) hop(ctx context.Context) {
	for ctx.Err() == nil {
		until := max(1, w.record.known.Load())
		after := 1 + w.random.Int64N(until)
		if w.random.IntN(3) == 0 {
			if list := w.list(ctx); list.Outcome == consistency.OK {
				after, until = list.Revision, list.Revision+5
			}
		}
		limited, cancel := context.WithTimeout(ctx, comeBackLimit)
		one := &watcher{
			name: w.name, scope: w.scope, plain: w.plain, browser: w.browser, random: w.random, pace: w.pace,
			http: w.http, servers: w.servers, record: w.record,
			until: until, reached: cancel,
		}
		one.run(limited, after)
		if errors.Is(limited.Err(), context.DeadlineExceeded) {
			one.watch.Until = until
		}
		cancel()
		w.pause(ctx, time.Second)
	}
}
