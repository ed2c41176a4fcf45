package discovery_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestReportIsOfOneRevision: even revisions have a problem, odd ones none.
func TestReportIsOfOneRevision(t *testing.T) {
	web, bad := service(t, "web.example", "10.1.0.1"), timeout(t, "nobody.example", 1)
	src := newObjects(web)
	s := discovery.New(discovery.Options{Source: src, HoldOff: time.Nanosecond})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	running.Go(func() {
		for ctx.Err() == nil {
			if r := s.Report(); r.Revision > 0 && len(r.Problems) != 1-int(r.Revision%2) {
				t.Errorf("revision %d with problems %v", r.Revision, r.Problems)
				return
			}
		}
	})
	for revision := int64(2); revision < 300; revision++ {
		if revision%2 == 0 {
			src.set(web, bad)
		} else {
			src.set(web)
		}
		if err := s.Await(ctx, revision); err != nil {
			t.Fatal(err)
		}
		if got := s.Revision(); got != revision {
			t.Fatalf("waited for revision %d, found %d", revision, got)
		}
	}
	cancel()
	running.Wait()
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		broken := &faults{}
		s := followWith(t, src, discovery.Options{}, broken)
		await := func(revision int64) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return s.Await(ctx, revision)
		}
		if err := await(1); err != nil {
			t.Errorf("what is published: %v", err)
		}
		if err := await(2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("what never comes: %v", err)
		}
		src.goOn(2)
		if err := await(2); err != nil {
			t.Errorf("a revision without a change: %v", err)
		}
		broken.advance = func(*mesh.Snapshot) { panic("a mistake") }
		src.set(web, service(t, "api.example", "10.1.0.2"))
		if err := await(3); err != nil {
			t.Errorf("a snapshot that is refused: %v", err)
		}
		src.relist(t)
		time.Sleep(time.Minute) // It is refused once more.
		src.goOn(4)
		if err := await(4); err != nil {
			t.Errorf("a revision without a change since, by a list: %v", err)
		}
		if r := s.Report(); r.Revision != 1 || len(r.Problems) != 1 {
			t.Errorf("after a refusal: %+v", r)
		}
	})
}
