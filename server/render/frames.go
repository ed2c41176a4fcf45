package render

import (
	"sync"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/status"
)

// framesSize bounds the texts in frames, in bytes.
const framesSize = 1 << 20

// frames caches the encoding of recently sent objects with their statuses. All
// watches send the same change, and the first of them encodes it. It is safe for
// concurrent use.
type frames struct {
	mu    sync.RWMutex
	as    *status.Table // the statuses in texts are from this board
	texts map[frame][]byte
	size  int
}

// frame is an object in one version of its kind.
type frame struct {
	object  *schema.Object
	version string
}

// of returns an object in a version, with its status on board. The text is shared:
// do not change it.
func (f *frames) of(board *status.Table, o *schema.Object, version string) []byte {
	f.mu.RLock()
	text, known := f.texts[frame{o, version}], f.as == board
	f.mu.RUnlock()
	if known && text != nil {
		return text
	}
	_, status := board.Of(o)
	text = WithStatus(o, version, status)
	f.keep(board, frame{o, version}, text)
	return text
}

func (f *frames) keep(board *status.Table, of frame, text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.as != board || f.size+len(text) > framesSize {
		f.as, f.texts, f.size = board, map[frame][]byte{}, 0
	}
	f.texts[of] = text
	f.size += len(text)
}
