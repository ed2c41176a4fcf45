package store

import "sync"

// TerminalError is why a watch ended, for implementations of Watcher to embed: Err may
// be asked at any time, by anybody.
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

// End says why. Call it once, before Batches is closed.
func (e *TerminalError) End(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
}
