package server

import (
	"net/http"
	"sync"
	"time"
)

const (
	// unreadPatience is how long a client may leave a piece of an answer unread while
	// others wait for what the answer holds.
	unreadPatience = 5 * time.Second
	// writtenAtOnce is how much of an answer is one piece, in bytes.
	writtenAtOnce = 64 << 10
)

// unread are answers that hold what others may wait for, until their clients have read
// them. The zero value is ready. It is safe for concurrent use.
type unread struct {
	mu sync.Mutex
	of map[*answerWriter]struct{}
}

// add adds an answer. The caller must remove it before its handler returns. A nil
// answer is not added.
func (u *unread) add(a *answerWriter) (remove func()) {
	if a == nil {
		return func() {}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[*answerWriter]struct{}{}
	}
	u.of[a] = struct{}{}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.of, a)
	}
}

// cut ends the connection of the client that has left a piece unread for longest, if
// that is longer than unreadPatience. It returns false if there is none.
func (u *unread) cut() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	var slowest *answerWriter
	longest := unreadPatience
	for a := range u.of {
		if waited := a.waited(); waited > longest {
			slowest, longest = a, waited
		}
	}
	if slowest == nil {
		return false
	}
	delete(u.of, slowest)
	return http.NewResponseController(slowest.ResponseWriter).SetWriteDeadline(time.Now()) == nil
}

// whileWaiting cuts answers every second until stop is called.
func (u *unread) whileWaiting() (stop func()) {
	ended := make(chan struct{})
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				u.cut()
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended) }
}

// waited returns how long the present write of an answer has taken.
func (a *answerWriter) waited() time.Duration {
	began := a.writing.Load()
	if began == 0 {
		return 0
	}
	return time.Since(time.Unix(0, began))
}

// Write writes a text piece by piece and notes how long the client takes for each.
func (a *answerWriter) Write(text []byte) (done int, err error) {
	defer a.writing.Store(0)
	for done < len(text) && err == nil {
		a.writing.Store(time.Now().UnixNano())
		var n int
		n, err = a.ResponseWriter.Write(text[done:min(done+writtenAtOnce, len(text))])
		done += n
	}
	return done, err
}
