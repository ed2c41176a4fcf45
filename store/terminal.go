package store

import "sync"

// TerminalError holds the error that ended a watch. Implementations of Watcher embed it.
// Err is safe for concurrent use at any time.
type TerminalError struct {
	mu  sync.Mutex
	err error
}

// Err implements Watcher.
func (e *TerminalError) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// End sets the reason. Call it once, before Batches is closed.
func (e *TerminalError) End(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
}
