package watch

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// stream writes one watch to one client. It holds only one batch, and a buffer
// while it writes. A client that does not read blocks its own watcher until the
// store cuts the watch off, or the write deadline this connection.
type stream struct {
	*watchRequest
	to   *deadlineWriter
	out  *bufio.Writer // writes to to; set during a write
	conn *http.ResponseController
	k    *watched
	slot *writeSlot

	revision   int64           // everything up to here was written
	bookmarked int64           // the newest revision that the client knows
	posted     uint64          // version of the statuses that were written
	ended      <-chan struct{} // closed when another client gets the permit; may be nil
}

func newStream(w http.ResponseWriter, k *watched, asked *watchRequest) *stream {
	conn := http.NewResponseController(w)
	// The request has been read. Its read deadline would end the watch.
	_ = conn.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", asked.events.format.ContentType())
	if asked.events.format == wire.Events {
		announceEvents(w.Header())
	}
	to := &deadlineWriter{w: w, conn: conn, timeout: k.opts.WatchWriteTimeout}
	return &stream{watchRequest: asked, to: to, conn: conn, k: k, slot: k.slots.newSlot()}
}

// deadlineWriter sets a deadline for every write to the connection, which is at
// least three quarters of the timeout ahead. Setting one costs more than looking at
// the clock, so it reuses them.
type deadlineWriter struct {
	w        http.ResponseWriter
	conn     *http.ResponseController
	timeout  time.Duration
	deadline time.Time
}

func (d *deadlineWriter) Write(p []byte) (int, error) {
	if now := time.Now(); d.deadline.Sub(now) < d.timeout/4*3 {
		d.deadline = now.Add(d.timeout)
		if err := d.conn.SetWriteDeadline(d.deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return 0, err
		}
	}
	return d.w.Write(p)
}

// run writes until the client leaves, the time is over, the server stops or the
// watch fails. It returns nil: the stream has begun, so failures are reported in
// the stream.
func (s *stream) run(ctx context.Context, b *startedWatch) error {
	news, done := s.followStatuses()
	defer done()
	if s.inTurn(ctx, func() error { return s.begin(b) }) != nil {
		return nil
	}
	bookmarks := time.NewTicker(s.k.opts.BookmarkInterval)
	defer bookmarks.Stop()
	beats, done := s.heartbeats()
	defer done()
	end := make(<-chan time.Time)
	if s.timeout > 0 {
		timer := time.NewTimer(s.timeout)
		defer timer.Stop()
		end = timer.C
	}
	for {
		select {
		case <-b.changes.ready():
			if !s.goOn(ctx, b.changes) {
				return nil
			}
		case batch, ok := <-b.changes.pushed():
			b.changes.hold(batch, ok)
			if !s.goOn(ctx, b.changes) {
				return nil
			}
		case <-news:
			if s.inTurn(ctx, func() (err error) { news, err = s.writeStatuses(ctx); return err }) != nil {
				return nil
			}
		case <-bookmarks.C:
			s.askBookmark(ctx, b.changes)
		case <-beats:
			if s.inTurn(ctx, s.beat) != nil {
				return nil
			}
		case <-end:
			s.writeEnd(nil)
			return nil
		case <-s.ended:
			s.writeEnd(nil)
			return nil
		case <-s.k.opts.Stopping:
			s.writeEnd(nil)
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *stream) inTurn(ctx context.Context, write func() error) error {
	if err := s.slot.take(ctx); err != nil {
		return err
	}
	defer s.slot.end()
	return s.buffered(write)
}

// buffered gives the stream a buffer for a write that flushes. Thousands of idle
// streams need no buffer.
func (s *stream) buffered(write func() error) error {
	s.out = answer.Buffers.Get().(*bufio.Writer)
	s.out.Reset(s.to)
	defer func() {
		s.out.Reset(nil)
		answer.Buffers.Put(s.out)
		s.out = nil
	}()
	return write()
}

func (s *stream) begin(b *startedWatch) error {
	if err := s.writeBegin(b); err != nil {
		return err
	}
	return s.settle()
}

func (s *stream) writeBegin(b *startedWatch) error {
	if b.initial == nil {
		if err := s.writeBatch(store.Batch{Revision: s.after, Events: b.again}); err != nil {
			return err
		}
		return s.writeBatch(b.first)
	}
	for _, o := range b.initial.Items {
		if !s.selected.Matches(o) {
			continue
		}
		if err := s.events.event(s.out, string(store.Added), o, false); err != nil {
			return err
		}
	}
	s.revision = b.initial.Revision
	return nil
}

// maxRun bounds the batches between two flushes, and thereby between two looks at
// the clock.
const maxRun = 64

// goOn writes the changes that are ready, or the end of the watch. It reports
// whether the stream goes on.
func (s *stream) goOn(ctx context.Context, from *changes) bool {
	var ended error
	err := s.inTurn(ctx, func() (err error) {
		ended, err = s.writeChanges(from)
		return err
	})
	if err == nil && ended != nil {
		s.writeEnd(ended)
	}
	return err == nil && ended == nil
}

// writeChanges writes the batches that are ready. It settles when there are no more
// for now, or for this slot, or when the watch has ended; ended is the reason for
// the end.
func (s *stream) writeChanges(from *changes) (ended, err error) {
	for n := range maxRun {
		batch, some, ended := from.next()
		switch {
		case some:
		case n == 0:
			return ended, nil
		default:
			return ended, s.settle()
		}
		if err := s.writeBatch(batch); err != nil {
			return nil, err
		}
	}
	return nil, s.settle()
}

func (s *stream) writeBatch(batch store.Batch) error {
	for one := range batch.Revisions() {
		if err := s.writeRevision(one.Revision, s.selected.Events(one.Events)); err != nil {
			return err
		}
	}
	s.revision = batch.Revision
	return nil
}

// writeRevision writes the client's events of one revision.
func (s *stream) writeRevision(revision int64, events []store.Event) error {
	for i, e := range events {
		if err := s.events.event(s.out, string(e.Type), e.Object, i == len(events)-1); err != nil {
			return err
		}
		s.bookmarked = revision
	}
	return nil
}

// settle ends a run of whole batches. A bookmark tells the client that the
// revisions before it are complete, so that the client can keep transactions
// together, or knows that it has caught up.
func (s *stream) settle() error {
	if s.bookmarks || s.positions() && s.revision > s.bookmarked {
		if err := s.writeBookmark(); err != nil {
			return err
		}
	}
	return s.flush()
}

// askBookmark asks the watcher for its progress. The watcher answers with a batch,
// perhaps an empty one, and a bookmark follows every run of batches.
func (s *stream) askBookmark(ctx context.Context, watcher store.Watcher) {
	if !s.positions() {
		return
	}
	if err := watcher.RequestProgress(ctx); err != nil {
		s.k.opts.Log.DebugContext(ctx, "no bookmark: the watch cannot tell its progress", "error", err)
	}
}

func (s *stream) writeBookmark() error {
	s.bookmarked = s.revision
	if !s.bookmarks {
		return s.events.position(s.out, s.revision)
	}
	endsState := s.marked
	s.marked = false
	return s.events.bookmark(s.out, s.revision, endsState)
}

// writeEnd ends the stream so that the client knows where to resume: with a last
// bookmark, and with an ERROR event if the client must list again. A client can
// simply resume a watch that was cut off for being slow or whose store is
// unavailable.
func (s *stream) writeEnd(err error) {
	_ = s.buffered(func() error { return s.writeLast(err) })
	if err != nil {
		s.k.opts.Log.Info("watch ended", "kind", s.k.TypeMeta().Kind, "revision", s.revision, "error", store.Logged(err))
	}
}

func (s *stream) writeLast(err error) error {
	if s.positions() && s.revision > s.bookmarked {
		_ = s.writeBookmark()
	}
	resumable := err == nil || errors.Is(err, store.ErrSlow) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled)
	if !resumable {
		_ = s.events.failure(s.out, wire.StatusOf(err))
	}
	return s.flush()
}

func (s *stream) flush() error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	return s.conn.Flush()
}
