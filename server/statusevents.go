package server

import (
	"context"

	"github.com/pilot-api/pilot-api/store"
)

// followStatuses begins to follow the statuses of objects, if there are any and the
// client wants them: news is closed when one has changed. To who goes on from a
// revision all are news: nobody knows which he has seen, and a status that changed
// between his list and his watch may never change again. People who read rows would
// see each twice.
func (s *stream) followStatuses() (news <-chan struct{}, done func()) {
	board := s.k.statuses
	if board == nil || !s.statuses {
		return nil, func() {}
	}
	done = board.watch()
	if s.after > 0 && s.events.format != formatTable {
		return alreadyClosed, done
	}
	_, s.posted, news = board.since(^uint64(0))
	return news, done
}

var alreadyClosed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// writeStatuses writes an event for each object of the watch whose status has
// changed, with the resourceVersion that it has, and then how far the client is, which
// is farther. One that is newer than what was written comes with its own event.
func (s *stream) writeStatuses(ctx context.Context) (news <-chan struct{}, err error) {
	keys, posted, news := s.k.statuses.since(s.posted)
	s.posted = posted
	wrote := false
	for _, key := range keys {
		if !s.scope.Contains(key) {
			continue
		}
		o, err := s.k.opts.Reads.Get(ctx, key, store.ReadOptions{AtLeast: store.Any})
		if err != nil || o.Revision() > s.revision || !s.selected.matches(o) {
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
