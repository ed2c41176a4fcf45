package watch

import (
	"context"

	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// followStatuses starts to follow the statuses of objects, if there are any and the
// client wants them. Statuses from the store come as changes. news is closed when a status has changed. If the client
// resumes from a revision, all statuses are news: the server does not know which
// ones the client has seen, and a status that changed between its list and its
// watch may never change again. Tables are an exception, because people would see
// each row twice.
func (s *stream) followStatuses() (news <-chan struct{}, done func()) {
	board := s.k.Board
	if board == nil || !s.statuses || s.k.AreStored() {
		return nil, func() {}
	}
	done = board.Watch()
	if s.after > 0 && s.events.format != wire.Table {
		return alreadyClosed, done
	}
	_, s.posted, news = board.Since(^uint64(0))
	return news, done
}

var alreadyClosed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// writeStatuses writes an event for each watched object whose status has changed.
// The event has the object's resourceVersion, so a bookmark with the client's later
// position follows. writeStatuses skips an object that is newer than what was
// written, whose own event will follow.
func (s *stream) writeStatuses(ctx context.Context) (news <-chan struct{}, err error) {
	keys, posted, news := s.k.Board.Since(s.posted)
	s.posted = posted
	wrote := false
	for _, key := range keys {
		if !s.scope.Contains(key) {
			continue
		}
		o, err := s.k.opts.Reads.Get(ctx, key, store.ReadOptions{AtLeast: store.Any})
		if err != nil || o.Revision() > s.revision || !s.selected.Matches(o) {
			continue
		}
		if err := s.events.event(s.out, string(store.Modified), o, false); err != nil {
			return news, err
		}
		wrote = true
	}
	if !wrote {
		return news, nil
	}
	return news, s.settle()
}
