package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/store"
)

// lean is a watcher that keeps only revisions, so that hundreds of them can follow long
// histories.
type lean struct {
	name    string
	url     string // Of the collection.
	http    *http.Client
	after   int64 // Where it begins.
	told    []int64
	seen    atomic.Int64
	streams int
	found   []consistency.Violation
}

func (l *lean) violate(rule, format string, args ...any) {
	l.found = append(l.found, consistency.Violation{Rule: rule, Text: l.name + ": " + fmt.Sprintf(format, args...)})
}

// follow reads from stream to stream until it has seen the revision in stop (0: not known
// yet) or ctx ends.
func (l *lean) follow(ctx context.Context, stop *atomic.Int64) {
	l.seen.Store(l.after)
	for ctx.Err() == nil {
		err := l.stream(ctx, stop)
		if err == nil {
			return
		}
		if errors.Is(err, errExpired) {
			l.violate("untrue end", "410 at revision %d", l.seen.Load())
			return
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

func (l *lean) stream(ctx context.Context, stop *atomic.Int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := watchFrom(ctx, l.http, l.url, l.seen.Load())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	l.streams++
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return err
		}
		if err := l.line(line); err != nil {
			return err
		}
		if end := stop.Load(); end != 0 && l.seen.Load() >= end {
			return nil
		}
	}
}

// watchFrom opens a watch after a revision that is completely known.
func watchFrom(ctx context.Context, c *http.Client, url string, after int64) (*http.Response, error) {
	req, err := watchRequest(ctx, url, after, true)
	if err != nil {
		return nil, err
	}
	return openWatch(c, req)
}

// watchRequest returns a request to watch after a revision. whole means that this
// revision is completely known.
func watchRequest(ctx context.Context, url string, after int64, whole bool) (*http.Request, error) {
	url += fmt.Sprintf("?watch=true&allowWatchBookmarks=true&resourceVersion=%d&wholeRevisions=%t", after, whole)
	return http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
}

func openWatch(c *http.Client, req *http.Request) (*http.Response, error) {
	resp, err := c.Do(req)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusGone {
		return nil, errExpired
	}
	return nil, fmt.Errorf("%s %s", resp.Status, text)
}

var (
	bookmarkStart = []byte(`{"type":"` + store.BookmarkFrame)
	errorStart    = []byte(`{"type":"` + store.ErrorFrame)
	versionStart  = []byte(`"resourceVersion":"`)
)

func (l *lean) line(line []byte) error {
	if bytes.HasPrefix(line, errorStart) {
		if bytes.Contains(line, []byte(`"code":410`)) {
			return errExpired
		}
		return errors.New(string(line))
	}
	_, rest, _ := bytes.Cut(line, versionStart)
	digits, _, _ := bytes.Cut(rest, []byte{'"'})
	revision, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return fmt.Errorf("a line without a revision: %w", err)
	}
	seen := l.seen.Load()
	if !bytes.HasPrefix(line, bookmarkStart) {
		if revision <= seen {
			l.violate("event repeated or out of order", "%d after %d", revision, seen)
		}
		l.told = append(l.told, revision)
	}
	l.seen.Store(max(seen, revision))
	return nil
}

// compare requires that all watchers received the same up to a revision, and everything
// that was acknowledged. Each began at its requested revision or later.
func compare(all []*lean, acknowledged []int64, stop int64) (found []consistency.Violation) {
	whole := map[int64]bool{}
	for _, l := range all {
		for _, revision := range l.told {
			whole[revision] = true
		}
	}
	for _, revision := range acknowledged {
		whole[revision] = true
	}
	truth := make([]int64, 0, len(whole))
	for revision := range whole {
		truth = append(truth, revision)
	}
	slices.Sort(truth)
	for _, l := range all {
		found = append(found, l.found...)
		if seen := l.seen.Load(); seen < stop {
			l.violate("watcher that did not come back", "it is at %d after %d streams, want %d", seen, l.streams, stop)
			found = append(found, l.found[len(l.found)-1])
			continue
		}
		want := upTo(truth, stop)
		want = want[len(upTo(truth, l.after)):]
		if got := upTo(l.told, stop); !slices.Equal(got, want) {
			l.violate("lost event", "it was told %d changes from %d to %d, there are %d", len(got), l.after, stop, len(want))
			found = append(found, l.found[len(l.found)-1])
		}
	}
	return found
}

func upTo(revisions []int64, last int64) []int64 {
	i, exact := slices.BinarySearch(revisions, last)
	if exact {
		i++
	}
	return revisions[:i]
}
