package objects

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
)

// listOf returns a list in JSON of size bytes.
func listOf(size int) *listText {
	return &listText{head: strings.Repeat("x", size-len(listTail))}
}

func unpack(t *testing.T, packed []byte) []byte {
	t.Helper()
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(gz)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestKeptLists checks that the first caller encodes its own list, and that later
// ones share the list that one of them encodes, until the state changes or nobody
// has asked for a while.
func TestKeptLists(t *testing.T) {
	for _, gzip := range []bool{false, true} {
		t.Run(fmt.Sprintf("gzip %t", gzip), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testKeptLists(t, listName{path: "/rules", gzip: gzip}) })
		})
	}
}

// TestKeptListsGoByTheirContent checks that requests for the same list share it,
// whatever their other parameters, and that others do not.
func TestKeptListsGoByTheirContent(t *testing.T) {
	name := func(target string) listName {
		r := httptest.NewRequest("GET", target, nil)
		r = wire.WithID(r, "1")
		wire.SetQuery(r, r.URL.Query())
		return listNameOf(r, false)
	}
	for _, target := range []string{"/rules", "/rules?labelSelector=a%3Db", "/rules?limit=500&labelSelector=a%3Db", "/rules?resourceVersion=7&resourceVersionMatch=Exact"} {
		with := target + "?"
		if strings.Contains(target, "?") {
			with = target + "&"
		}
		for _, more := range []string{"timeout=7s", "pretty=true", "includeObject=Object", "watch=false", "allowWatchBookmarks=true", "timeoutSeconds=5", "statusEvents=true"} {
			if name(with+more) != name(target) {
				t.Errorf("%s%s is not the list of %s", with, more, target)
			}
		}
		for _, other := range []string{"labelSelector=c", "fieldSelector=a%3Db", "resourceVersion=9", "resourceVersionMatch=NotOlderThan", "limit=3", "continue=x"} {
			param, _, _ := strings.Cut(other, "=")
			if !strings.Contains(target, param) && name(with+other) == name(target) {
				t.Errorf("%s%s is the list of %s", with, other, target)
			}
		}
	}
	if name("/rules?limit=5&labelSelector=a") != name("/rules?labelSelector=a&limit=5") {
		t.Error("the order of parameters makes a difference")
	}
}

func testKeptLists(t *testing.T, name listName) {
	var l keptLists
	var made atomic.Int64
	ask := func(revision string) (*keptList, func()) {
		return l.text(t.Context(), name, listState{revision: revision}, func() *listText {
			made.Add(1)
			return listOf(1 << 20)
		})
	}
	askMany := func(revision string) {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				one, done := ask(revision)
				defer done()
				text := one.text
				if name.gzip {
					text = unpack(t, text)
				}
				if len(text) != 1<<20 || one.tag == "" {
					t.Errorf("%d bytes, tag %q", len(text), one.tag)
				}
			})
		}
		all.Wait()
	}
	for i, revision := range []string{"1", "2"} {
		if one, _ := ask(revision); one != nil || made.Load() != int64(i) || l.has(name) {
			t.Fatalf("kept %v when it was asked for once, made %d", one, made.Load())
		}
		if askMany(revision); made.Load() != int64(i+1) {
			t.Fatalf("made %d times for two states", made.Load())
		}
		for state, want := range map[string]bool{revision: true, "another": false} {
			one, done := l.still(name, listState{revision: state})
			if done(); (one != nil) != want || !l.has(name) {
				t.Errorf("what is kept of %s is still that of %s: %t", revision, state, one != nil)
			}
		}
	}
	allForgotten(t, &l)
	if one, _ := ask("2"); one != nil {
		t.Fatal("kept for longer than it was asked for")
	}
}

// TestKeptListsAreBounded checks that a text counts while anybody reads it,
// whatever came later, that callers without room encode their own, and that there
// is room again.
func TestKeptListsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l keptLists
		ask := func(revision int, size int) (*keptList, func()) {
			return l.text(t.Context(), listName{path: "/rules"}, listState{revision: fmt.Sprint(revision)}, func() *listText { return listOf(size) })
		}
		const size = keptListsMax/4 + 1
		var readers []func()
		for revision := range 5 {
			ask(revision, size)
			one, done := ask(revision, size)
			if has := one != nil; has != (revision < 3) {
				t.Fatalf("list %d of four that are too much is kept: %t", revision+1, has)
			}
			readers = append(readers, done)
		}
		if l.bytes != 3*size {
			t.Fatalf("%d bytes are counted, want %d", l.bytes, 3*size)
		}
		for _, done := range readers {
			done()
		}
		ask(5, size)
		if one, done := ask(5, size); one == nil || l.bytes != size {
			t.Fatalf("after all have read: kept %t, %d bytes", one != nil, l.bytes)
		} else {
			done()
		}
		for i := range 2 * mostLists {
			l.text(t.Context(), listName{path: fmt.Sprint(i)}, listState{}, nil)
		}
		if lists, _ := l.counts(); lists > mostLists {
			t.Fatalf("%d lists are noted", lists)
		}
		allForgotten(t, &l)
	})
}

// allForgotten waits, in a bubble, until nobody has asked for long enough.
func allForgotten(t *testing.T, l *keptLists) {
	t.Helper()
	time.Sleep(keptListFor)
	synctest.Wait()
	if lists, bytes := l.counts(); lists+bytes != 0 {
		t.Fatalf("%d bytes, %d lists are left", bytes, lists)
	}
}

func (l *keptLists) counts() (lists, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lists), l.bytes
}

// TestKeptListsThatDoNotFit checks that a list which gzip does not make small, or
// which is small itself, is encoded for each caller. A caller that stops waiting
// does not keep a text.
func TestKeptListsThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l keptLists
		noise := make([]byte, 1<<20)
		_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
		for name, list := range map[string]*listText{"noise": {head: string(noise)}, "small": listOf(answer.CompressFrom - 1)} {
			for range 3 {
				if one, _ := l.text(t.Context(), listName{path: name, gzip: true}, listState{}, func() *listText { return list }); one != nil {
					t.Errorf("%s is kept, in %d bytes", name, len(one.text))
				}
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		begun, finish := make(chan struct{}), make(chan struct{})
		slow := func() *listText { close(begun); <-finish; return listOf(1 << 20) }
		l.text(t.Context(), listName{path: "slow"}, listState{}, slow)
		go func() {
			_, done := l.text(t.Context(), listName{path: "slow"}, listState{}, slow)
			done()
		}()
		<-begun
		cancel()
		if one, _ := l.text(gone, listName{path: "slow"}, listState{}, slow); one != nil {
			t.Error("who is gone was given a list")
		}
		close(finish)
		allForgotten(t, &l)
	})
}

// TestKeptListPanics checks that a panic in one request does not affect the
// requests that wait for it.
func TestKeptListPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l keptLists
		name := listName{path: "/rules"}
		for what, compose := range map[string]func() *listText{
			"composed": func() *listText { panic("composed") },
			"written": func() *listText {
				return &listText{head: strings.Repeat("x", answer.CompressFrom), items: make([]*schema.Object, 1), statuses: make([][]byte, 1)}
			},
		} {
			state := listState{revision: what}
			l.text(t.Context(), name, state, compose)
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", what)
					}
				}()
				l.text(t.Context(), name, state, compose)
			}()
			if one, _ := l.text(t.Context(), name, state, compose); one != nil || l.bytes != 0 {
				t.Errorf("%s: kept %v, %d bytes", what, one, l.bytes)
			}
		}
	})
}
