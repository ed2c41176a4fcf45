package objects

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/status"
	"github.com/pilot-api/pilot-api/server/wire"
)

// Bounds of keptLists.
const (
	keptListFrom = 100      // objects; encoding a shorter list is as fast as finding it
	keptListsMax = 32 << 20 // bytes of all texts in use
	keptListFor  = 5 * time.Second
	// keptGzipShare bounds the gzip of a list to this part of its length. A longer
	// gzip is not kept.
	keptGzipShare = 4
)

// keptLists caches the answers to lists that are requested again while nothing has
// changed. Clients that all return after a restart request the same list, mostly in
// gzip, which costs ten times as much as the list: keptLists encodes it once for
// all of them. It does not keep a list that is requested only once.
//
// A text may have many readers at a time, and counts until the slowest of them is
// done. The zero keptLists is empty and ready to use. It is safe for concurrent
// use.
type keptLists struct {
	turn  func() (leave func(), err error) // waits to compress a list; may be nil
	mu    sync.Mutex
	lists map[listName]*keptList
	bytes int
}

// listName identifies a request for a list. The content of the list follows from it
// and from the state.
type listName struct {
	path, query string
	gzip        bool
}

// listContent are the query parameters that decide what a list contains.
var listContent = []string{"labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "limit", "continue"}

// listNameOf returns the name of the list that r asks for. The order of parameters
// and the timeout do not matter.
func listNameOf(r *http.Request, gzip bool) listName {
	content := url.Values{}
	for _, param := range listContent {
		if value := wire.Query(r).Get(param); value != "" {
			content.Set(param, value)
		}
	}
	return listName{r.URL.EscapedPath(), content.Encode(), gzip}
}

// listState identifies the state that a list shows.
type listState struct {
	revision  string
	board     uint64 // version of the statuses
	published int64  // revision of the configuration in force
}

// keptList is a list that was requested in one state. keptLists.mu guards it,
// except text and tag, which do not change once made is closed.
type keptList struct {
	state   listState
	made    chan struct{} // nil until the list is requested again
	text    []byte        // nil if it is not kept
	tag     string
	size    int // bytes counted for it
	readers int
	gone    bool // removed from keptLists.of
	forget  *time.Timer
}

// text returns the list in a state, or nil if the caller must encode it itself. The
// first caller that requests a list again encodes it for all. Call done when the
// text is no longer read.
func (l *keptLists) text(ctx context.Context, name listName, state listState, list func() *listText) (one *keptList, done func()) {
	one, makes := l.ask(name, state)
	if one == nil {
		return nil, func() {}
	}
	done = func() { l.leave(one) }
	if makes {
		l.make(one, name.gzip, list)
	}
	select {
	case <-one.made:
		if one.text != nil {
			return one, done
		}
	case <-ctx.Done():
	}
	done()
	return nil, func() {}
}

// ask adds a reader to a list and returns it, or nil on the first request. makes
// reports whether the caller must encode it.
func (l *keptLists) ask(name listName, state listState) (one *keptList, makes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one = l.lists[name]
	if one == nil || one.state != state {
		l.drop(name, one)
		l.note(name, state)
		return nil, false
	}
	one.forget.Reset(keptListFor)
	one.readers++
	if one.made == nil {
		one.made, makes = make(chan struct{}), true
	}
	return one, makes
}

// has reports whether a text is kept, possibly of an older state.
func (l *keptLists) has(name listName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists[name].isMade()
}

// still returns the text that is kept of a state, or nil. Call done as for text.
func (l *keptLists) still(name listName, state listState) (one *keptList, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one = l.lists[name]
	if !one.isMade() || one.state != state {
		return nil, func() {}
	}
	one.forget.Reset(keptListFor)
	one.readers++
	return one, func() { l.leave(one) }
}

func (one *keptList) isMade() bool {
	if one == nil || one.made == nil {
		return false
	}
	select {
	case <-one.made:
		return one.text != nil
	default:
		return false
	}
}

// mostLists bounds the number of names.
const mostLists = 256

func (l *keptLists) note(name listName, state listState) {
	if len(l.lists) >= mostLists {
		return // Later ones are noted when these are forgotten.
	}
	if l.lists == nil {
		l.lists = map[listName]*keptList{}
	}
	one := &keptList{state: state}
	one.forget = time.AfterFunc(keptListFor, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.drop(name, one)
	})
	l.lists[name] = one
}

// drop removes a list, if it is still there, so that later requests do not find it.
func (l *keptLists) drop(name listName, one *keptList) {
	if one == nil || one.gone {
		return
	}
	one.forget.Stop()
	one.gone = true
	delete(l.lists, name)
	l.free(one)
}

func (l *keptLists) leave(one *keptList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.readers--
	l.free(one)
}

// free stops counting a text that nobody uses.
func (l *keptLists) free(one *keptList) {
	if one.gone && one.readers == 0 {
		l.bytes -= one.size
		one.size = 0
	}
}

// make encodes the text if there is room. It continues when its client leaves, and
// a panic in it affects one request only.
func (l *keptLists) make(one *keptList, gzip bool, compose func() *listText) {
	defer func() {
		if one.text == nil {
			l.take(one, 0)
		}
		close(one.made)
	}()
	list := compose()
	most := list.size()
	if most < answer.CompressFrom {
		return // Its gzip would differ from the first answer, which was not compressed.
	}
	if gzip {
		most /= keptGzipShare
	}
	if !l.take(one, most) {
		return
	}
	out := &bounded{most: most}
	if gzip {
		if l.turn != nil {
			leave, err := l.turn()
			if err != nil {
				return // Each request encodes its own.
			}
			defer leave()
		}
		answer.Pack(out, list.writeTo)
	} else {
		out.Grow(most)
		list.writeTo(out)
	}
	if out.full {
		return
	}
	one.text, one.tag = out.exact(), list.tag()
	l.take(one, len(one.text))
}

// take counts size bytes for a list in place of its previous size. It returns false
// if there is no room.
func (l *keptLists) take(one *keptList, size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if size > one.size && l.bytes-one.size+size > keptListsMax {
		return false
	}
	l.bytes += size - one.size
	one.size = size
	return true
}

// bounded is a buffer of at most most bytes.
type bounded struct {
	bytes.Buffer
	most int
	full bool
}

var errFull = errors.New("longer than may be kept")

func (b *bounded) Write(p []byte) (int, error) {
	if b.full = b.full || b.Len()+len(p) > b.most; b.full {
		return 0, errFull
	}
	return b.Buffer.Write(p)
}

// exact returns the bytes without spare capacity.
func (b *bounded) exact() []byte {
	if b.Len() == b.Cap() {
		return b.Bytes()
	}
	return bytes.Clone(b.Bytes())
}

// stateOf returns the state that a list of a revision shows.
func stateOf(t *status.Table, revision string) listState {
	if t == nil {
		return listState{revision: revision}
	}
	return listState{revision: revision, board: t.Version(), published: t.Revision()}
}
