package answer

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// unreadPatience is how long a client may leave a piece of an answer unread while
	// others wait for what the answer holds.
	unreadPatience = 5 * time.Second
	// writtenAtOnce is how much of an answer is one piece, in bytes.
	writtenAtOnce = 64 << 10
)

// Unread is the set of answers that hold shared resources until their clients have read
// them. The zero value is ready. It is safe for concurrent use.
type Unread struct {
	mu      sync.Mutex
	answers map[*TimedWriter]struct{}
}

// Add adds an answer. The caller must remove it before its handler returns.
func (u *Unread) Add(a *TimedWriter) (remove func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.answers == nil {
		u.answers = map[*TimedWriter]struct{}{}
	}
	u.answers[a] = struct{}{}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.answers, a)
	}
}

// cut ends the connection of the client that has left a piece unread for longest, if
// that is longer than unreadPatience. It returns false if there is none.
func (u *Unread) cut() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	var slowest *TimedWriter
	longest := unreadPatience
	for a := range u.answers {
		if waited := a.waited(); waited > longest {
			slowest, longest = a, waited
		}
	}
	if slowest == nil {
		return false
	}
	delete(u.answers, slowest)
	return http.NewResponseController(slowest).SetWriteDeadline(time.Now()) == nil
}

// addPaced adds an answer that is paced, if w is one.
func (u *Unread) addPaced(w http.ResponseWriter) (remove func()) {
	if by := pacedBy(w); by != nil {
		return u.Add(by.TimedWriter)
	}
	return func() {}
}

// WhileWaiting cuts answers every second until stop is called.
func (u *Unread) WhileWaiting() (stop func()) {
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

// TimedWriter measures how long the client takes for each piece of an answer.
type TimedWriter struct {
	http.ResponseWriter
	writing atomic.Int64 // when the present write began, in Unix nanoseconds; 0 for none
}

// Unwrap is for http.ResponseController.
func (t *TimedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// waited returns how long the present write has taken.
func (t *TimedWriter) waited() time.Duration {
	began := t.writing.Load()
	if began == 0 {
		return 0
	}
	return time.Since(time.Unix(0, began))
}

// Write writes a text piece by piece.
func (t *TimedWriter) Write(text []byte) (done int, err error) {
	defer t.writing.Store(0)
	for done < len(text) && err == nil {
		t.writing.Store(time.Now().UnixNano())
		var n int
		n, err = t.ResponseWriter.Write(text[done:min(done+writtenAtOnce, len(text))])
		done += n
	}
	return done, err
}
