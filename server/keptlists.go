package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Bounds of keptLists.
const (
	keptListFrom = 100      // objects: shorter ones are made as quickly as they are found
	keptListsMax = 32 << 20 // bytes of all texts that anybody has
	keptListFor  = 5 * time.Second
	// keptGzipShare is what part of a list its gzip may take, or it is not kept.
	keptGzipShare = 4
)

// keptLists are the answers to lists that are asked for again while nothing has
// changed. Clients that come back, all at once after a restart, want the same list
// each, and mostly in gzip, which costs ten times what the list does: it is made for
// all of them once. A list that is asked for a single time is never in memory.
//
// A text has as many readers as write it, and counts until the slowest of them is
// done. It is safe for concurrent use; the zero keptLists keeps nothing yet.
type keptLists struct {
	turn  func() (leave func(), err error) // of putting one into gzip; nil for none
	mu    sync.Mutex
	of    map[listName]*keptList
	bytes int
}

// listName is what is asked for: what a list has follows from that and the state.
type listName struct {
	path, query string
	gzip        bool
}

// listContent are the query parameters that what is in a list depends on.
var listContent = []string{"labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "limit", "continue"}

// listNameOf is the same for requests that want the same list, in whatever order they
// say so and however long they wait for it.
func listNameOf(r *http.Request, gzip bool) listName {
	content := url.Values{}
	for _, param := range listContent {
		if value := queryOf(r).Get(param); value != "" {
			content.Set(param, value)
		}
	}
	return listName{r.URL.EscapedPath(), content.Encode(), gzip}
}

// listState is what a list is of.
type listState struct {
	revision  string
	board     uint64 // the version of the statuses
	published int64  // what they are pending for
}

// keptList is a list that was asked for in one state. Guarded by keptLists.mu, but
// for text and tag, which do not change once made is closed.
type keptList struct {
	state   listState
	made    chan struct{} // nil until it is asked for again
	text    []byte        // nil when it is not kept
	tag     string
	size    int // bytes that are counted for it
	readers int
	gone    bool // from keptLists.of
	forget  *time.Timer
}

// text is what a list is in a state; nil when the caller has to make it for itself.
// The first who asks again makes it for all. Call done when the text is not read any
// more.
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

// ask finds a list for one more reader; none when it is asked for the first time.
func (l *keptLists) ask(name listName, state listState) (one *keptList, makes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one = l.of[name]
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

// has reports whether a text is kept of what may be another state by now.
func (l *keptLists) has(name listName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[name].isMade()
}

// still is the text that is kept of a state, nil if none is. Call done as that of text.
func (l *keptLists) still(name listName, state listState) (one *keptList, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one = l.of[name]
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

// mostLists bounds how many names are noted.
const mostLists = 256

func (l *keptLists) note(name listName, state listState) {
	if len(l.of) >= mostLists {
		return // Until those are forgotten.
	}
	if l.of == nil {
		l.of = map[listName]*keptList{}
	}
	one := &keptList{state: state}
	one.forget = time.AfterFunc(keptListFor, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.drop(name, one)
	})
	l.of[name] = one
}

// drop takes a list, if it is still there, from who asks next.
func (l *keptLists) drop(name listName, one *keptList) {
	if one == nil || one.gone {
		return
	}
	one.forget.Stop()
	one.gone = true
	delete(l.of, name)
	l.free(one)
}

func (l *keptLists) leave(one *keptList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.readers--
	l.free(one)
}

// free no longer counts a text that nobody has.
func (l *keptLists) free(one *keptList) {
	if one.gone && one.readers == 0 {
		l.bytes -= one.size
		one.size = 0
	}
}

// make makes the text, if there is room. No client can keep it from being made; and a
// panic is that of one request.
func (l *keptLists) make(one *keptList, gzip bool, compose func() *listText) {
	defer func() {
		if one.text == nil {
			l.take(one, 0)
		}
		close(one.made)
	}()
	list := compose()
	most := list.size()
	if most < compressFrom {
		return // Or its gzip would be another answer than when it was asked for first.
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
				return // Each goes on by itself.
			}
			defer leave()
		}
		pack(out, list.writeTo)
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

// take counts bytes for a list, in place of those that were.
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

// bounded takes no more than most bytes.
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

// exact are the bytes, with nothing behind them.
func (b *bounded) exact() []byte {
	if b.Len() == b.Cap() {
		return b.Bytes()
	}
	return bytes.Clone(b.Bytes())
}
