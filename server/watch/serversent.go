package watch

import (
	"bufio"
	"net/http"
	"strconv"
	"time"

	"github.com/pilot-api/pilot-api/server/wire"
)

// Server-sent events are the form of a watch for browsers, which resume it by
// themselves (EventSource). The data is a line of any other watch, the id a
// resourceVersion. An id is sent only where a revision is complete, so that a
// client which resumes from it receives a transaction as a whole, or again as a
// whole.

// lastEventID is the header with which a browser resumes.
const lastEventID = "Last-Event-ID"

// readLastEvent resumes a watch after the client's last event. It overrides the
// beginning that the query asks for.
func (a *watchRequest) readLastEvent(r *http.Request) error {
	id := r.Header.Get(lastEventID)
	if a.events.format != wire.Events || id == "" {
		return nil
	}
	revision, err := strconv.ParseInt(id, 10, 64)
	if err != nil || revision <= 0 {
		return wire.BadRequest("%s: must be the id of an event, found %q", lastEventID, id)
	}
	a.after, a.fresh, a.whole, a.marked = revision, revision, true, false
	return nil
}

// announceEvents keeps caches and proxies from holding events back.
func announceEvents(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx
}

func writeID(out *bufio.Writer, id string) {
	_, _ = out.WriteString("id: " + id + "\n")
}

// position moves the client's last id forward without an event.
func (e *eventEncoder) position(out *bufio.Writer, revision int64) error {
	writeID(out, strconv.FormatInt(revision, 10))
	return out.WriteByte('\n')
}

// positions reports whether the client receives its position even if nothing has
// happened.
func (s *stream) positions() bool { return s.bookmarks || s.events.format == wire.Events }

// heartbeats returns a channel that receives when a heartbeat is due. It is nil for
// other forms of a watch.
func (s *stream) heartbeats() (due <-chan time.Time, done func()) {
	if s.events.format != wire.Events {
		return nil, func() {}
	}
	ticker := time.NewTicker(s.k.opts.HeartbeatInterval)
	return ticker.C, ticker.Stop
}

// beat writes a comment, which keeps the connection from looking dead.
func (s *stream) beat() error {
	if _, err := s.out.WriteString(":\n\n"); err != nil {
		return err
	}
	return s.flush()
}
