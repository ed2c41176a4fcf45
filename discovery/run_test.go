package discovery_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// pause is longer than the default hold-off.
const pause = 110 * time.Millisecond

func TestNothingBeforeTheFirstSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects()
		src.synced = false
		s := follow(t, src, discovery.Options{})
		_, err := s.V3(discovery.ClusterType, mesh.Node{ID: nodeA}, "", nil)
		if !errors.Is(err, discovery.ErrNotReady) || s.Ready() {
			t.Errorf("got %v, want ErrNotReady", err)
		}
		if _, err := s.V1Clusters("nobody"); !errors.Is(err, discovery.ErrBadNode) {
			t.Errorf("a bad node: got %v, want ErrBadNode", err)
		}
		if _, err := s.V1Endpoints("web.example|http"); !errors.Is(err, discovery.ErrNotReady) {
			t.Errorf("endpoints: got %v, want ErrNotReady", err)
		}

		// The first one does not wait: the clock stands still here.
		src.set(service(t, "web.example", "10.1.0.1"))
		synctest.Wait()
		if !s.Ready() || s.Revision() != 2 {
			t.Errorf("ready %v at revision %d, want revision 2 at once", s.Ready(), s.Revision())
		}
	})
}

// TestHoldOff: what comes after a quiet time does not wait, what comes soon
// after it waits for the end of the hold-off and no longer.
func TestHoldOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects()
		s := follow(t, src, discovery.Options{HoldOff: 100 * time.Millisecond, MaxHoldOff: 500 * time.Millisecond})
		want := func(after string, revision int64) {
			t.Helper()
			synctest.Wait()
			if got := s.Revision(); got != revision {
				t.Errorf("%s: revision %d, want %d", after, got, revision)
			}
		}
		time.Sleep(100 * time.Millisecond)
		for step := int64(0); step < 6; step += 2 {
			src.set()
			want("a change after quiet", step+2)
			time.Sleep(30 * time.Millisecond)
			src.set()
			time.Sleep(69 * time.Millisecond)
			want("within the hold-off", step+2)
			time.Sleep(time.Millisecond)
			want("at the end of the hold-off", step+3)
			time.Sleep(100 * time.Millisecond)
		}
	})
}

func TestBurstIsPublishedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects()
		s := follow(t, src, discovery.Options{})
		for range 5 {
			src.set(service(t, "web.example", "10.1.0.1"))
			time.Sleep(20 * time.Millisecond)
		}
		if s.Revision() != 1 {
			t.Errorf("published revision %d in the middle of a burst", s.Revision())
		}
		time.Sleep(pause)
		if s.Revision() != 6 {
			t.Errorf("revision %d after the burst, want 6", s.Revision())
		}
	})
}

func TestEndlessChangesArePublishedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects()
		s := follow(t, src, discovery.Options{HoldOff: 50 * time.Millisecond, MaxHoldOff: 500 * time.Millisecond})
		for range 60 {
			src.set(service(t, "web.example", "10.1.0.1"))
			time.Sleep(10 * time.Millisecond)
		}
		if s.Revision() < 40 {
			t.Errorf("still at revision %d after 600 ms of changes", s.Revision())
		}
	})
}

// TestLongPublicationsRest checks that publications take at most half of the time while
// writes go on, however long one takes, and that the first after a quiet time does not wait.
func TestLongPublicationsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 2 * time.Second
		var began []time.Time
		src := newObjects()
		slow := &faults{}
		s := followWith(t, src, discovery.Options{}, slow)
		synctest.Wait()
		slow.advance = func(*mesh.Snapshot) { began = append(began, time.Now()); time.Sleep(each) }
		time.Sleep(time.Minute)
		start := time.Now()
		for range 190 { // It ends before a sixth one is due.
			src.set(service(t, "web.example", "10.1.0.1"))
			time.Sleep(100 * time.Millisecond)
		}
		if len(began) != 5 || began[0] != start || s.Revision() < 120 {
			t.Errorf("publications after %v of 19 s, each of 2 s, up to revision %d; want 5, the first at once", since(start, began), s.Revision())
		}
		time.Sleep(time.Minute)
		if s.Revision() != 191 {
			t.Errorf("revision %d is published, want 191", s.Revision())
		}
	})
}

// TestAPublicationThatWaitedDoesNotRest checks that the next publication comes soon if the
// last one only waited, as it does while many proxies connect.
func TestAPublicationThatWaitedDoesNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects()
		s := followWith(t, src, discovery.Options{}, &faults{})
		synctest.Wait()
		done := s.Occupy()
		src.set(service(t, "web.example", "10.1.0.1"))
		time.Sleep(time.Minute)
		done()
		synctest.Wait()
		src.set(service(t, "web.example", "10.1.0.2"))
		time.Sleep(time.Second)
		if s.Revision() != 3 {
			t.Errorf("a second after a change, revision %d is published, want 3", s.Revision())
		}
	})
}

func since(start time.Time, times []time.Time) (out []time.Duration) {
	for _, at := range times {
		out = append(out, at.Sub(start))
	}
	return out
}

// TestChangesAfterARelist: an object that changes, or goes, after its source was
// read anew is there once, or not at all.
func TestChangesAfterARelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		versioned := func(o *schema.Object, version string) *schema.Object {
			meta := o.Meta
			meta.ResourceVersion = version
			out, err := schema.New(o.Kind, meta, o.SpecJSON())
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		web, api := versioned(service(t, "web.example", "10.1.0.1"), "1"), versioned(service(t, "api.example", "10.1.0.2"), "1")
		src := newObjects(web, api)
		s := follow(t, src, discovery.Options{})
		src.relist(t)
		time.Sleep(time.Second)
		src.goOn(1) // From now on it is known what changes.
		src.set(versioned(service(t, "web.example", "10.1.0.3"), "2"))
		time.Sleep(time.Second)
		got := resourceNames(t, v3(t, s, discovery.EndpointType, nodeA))
		if endpoints := string(v3(t, s, discovery.EndpointType, nodeA, "web.example|http").Body); s.Revision() != 2 ||
			!slices.Equal(got, []string{"web.example|http"}) || !strings.Contains(endpoints, "10.1.0.3") || len(s.Report().Problems) > 0 {
			t.Errorf("revision %d: services %v, endpoints %s, problems %v", s.Revision(), got, endpoints, s.Report().Problems)
		}
	})
}

func TestBadSnapshotKeepsTheLastGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web)
		broken := &faults{}
		s := followWith(t, src, discovery.Options{}, broken)
		before := v3(t, s, discovery.ClusterType, nodeA)

		broken.advance = func(next *mesh.Snapshot) {
			if next.Revision == 2 {
				panic("a mistake")
			}
		}
		src.set(web, service(t, "api.example", "10.1.0.2"))
		time.Sleep(pause)
		if s.Revision() != 1 {
			t.Errorf("published revision %d, want the last good one to stay", s.Revision())
		}
		if got := v3(t, s, discovery.ClusterType, nodeA); got.Version != before.Version {
			t.Error("clusters changed")
		}
		if text := s.Report().Problems.Error(); !strings.Contains(text, "proxies keep what they had") {
			t.Errorf("problems do not say so: %s", text)
		}

		src.set(web)
		time.Sleep(pause)
		if s.Revision() != 3 || len(s.Report().Problems) != 0 {
			t.Errorf("revision %d, problems %v after the recovery", s.Revision(), s.Report().Problems)
		}
	})
}
