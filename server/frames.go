package server

import (
	"sync"

	"github.com/pilot-api/pilot-api/schema"
)

// framesSize bounds what frames keeps, in bytes.
const framesSize = 1 << 20

// frames are objects with their statuses as watches were sent them a moment ago: a
// change has as many readers as there are watches, and is put together for the
// first of them. It is safe for concurrent use.
type frames struct {
	mu    sync.RWMutex
	as    *postings // What the statuses are of.
	texts map[*schema.Object][]byte
	size  int
}

// of is an object with its status by a board; the text is shared.
func (f *frames) of(board *postings, o *schema.Object) []byte {
	f.mu.RLock()
	text, known := f.texts[o], f.as == board
	f.mu.RUnlock()
	if known && text != nil {
		return text
	}
	_, status := board.status(o)
	text = withStatus(o, status)
	f.keep(board, o, text)
	return text
}

func (f *frames) keep(board *postings, o *schema.Object, text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.as != board || f.size+len(text) > framesSize {
		f.as, f.texts, f.size = board, map[*schema.Object][]byte{}, 0
	}
	f.texts[o] = text
	f.size += len(text)
}
