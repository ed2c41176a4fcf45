package status

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// TestBoardLooksSeldom checks that the proxies are probed only from time to time,
// however often the board and this replica are queried, no more often with
// watchers, and not by itself after the last watcher has left.
func TestBoardLooksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		b, own := New(Options{Log: slog.New(slog.DiscardHandler), Statuses: func(*discovery.ObjectStatuses) *discovery.ObjectStatuses {
			looks.Add(1)
			return &discovery.ObjectStatuses{}
		}})
		kind, _ := schema.KindByName("RouteRule")
		o, err := schema.New(kind, metav1.ObjectMeta{Name: "a", Namespace: "default"}, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			b.Recent().Of(o)
			if _, _, err := own.Text(t.Context(), Age); err != nil {
				t.Fatal(err)
			}
		}
		if n := looks.Load(); n != 1 {
			t.Errorf("asked often it looked %d times, want once", n)
		}
		first, second := b.Watch(), b.Watch()
		for range 100 {
			time.Sleep(Age / 10)
			b.Recent().Of(o)
			if _, _, err := own.Text(t.Context(), Age); err != nil {
				t.Fatal(err)
			}
		}
		if n := looks.Load(); n > 11 {
			t.Errorf("it looked %d times in the time of 10 looks", n)
		}
		first()
		second()
		before := looks.Load()
		time.Sleep(10 * Age)
		if n := looks.Load(); n != before {
			t.Errorf("it looked %d times for nobody", n-before)
		}
		again := b.Watch()
		time.Sleep(3 * Age)
		if looks.Load() == before {
			t.Error("it does not look for a new watcher")
		}
		again()
		synctest.Wait() // The bubble ends only if its goroutines have.
	})
}

// TestBoardKnowsWhatIsSo checks that a refresh which reuses the one before finds
// the same as one from scratch, whatever other replicas reported meanwhile.
func TestBoardKnowsWhatIsSo(t *testing.T) {
	own := manyObjects(t, 3)
	snapshots := []peerSnapshot{{}, {silent: []string{"replica b does not answer"}}, {awaited: []string{"a has just started"}}}
	board := newTable()
	for _, i := range []int{0, 0, 1, 1, 0, 2, 2, 0, 1, 2, 1, 0, 0} {
		others := snapshots[i]
		board = board.next(own, others)
		for _, o := range own.Objects {
			ref := o.Key().Ref()
			want := statusOf(o, others.add(own.Of(ref, o.Revision()), ref, o.Revision()))
			if got := board.entries[o.Key()].status; !sameStatus(got, want) {
				t.Fatalf("%+v: it says %+v, want %+v", others, got, want)
			}
		}
	}
}

// TestConditionsAreOfTheObject checks that a condition keeps its transition time
// when its object changes, and has none from before the object was created.
func TestConditionsAreOfTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := newTable()
		since := func(resourceVersion string, created metav1.Time) time.Time {
			own := manyObjects(t, 1)
			meta := own.Objects[0].Meta
			meta.ResourceVersion, meta.CreationTimestamp = resourceVersion, created
			made, err := own.Objects[0].WithMeta(meta)
			if err != nil {
				t.Fatal(err)
			}
			own.Objects[0] = made
			board = board.next(own, peerSnapshot{})
			time.Sleep(time.Hour)
			return board.entries[made.Key()].status.Conditions[0].LastTransitionTime.Time
		}
		first := metav1.Now().Rfc3339Copy()
		for _, version := range []string{"1", "2"} {
			if got := since(version, first); !got.Equal(first.Time) {
				t.Errorf("version %s is accepted since %v, want %v", version, got, first)
			}
		}
		again := metav1.Now().Rfc3339Copy()
		if got := since("3", again); !got.Equal(again.Time) {
			t.Errorf("made again it is accepted since %v, want %v", got, again)
		}
	})
}

// TestBoardTellsNewsLate checks that a caller who knows the last version is told what has
// changed since, also if looks that found nothing came in between.
func TestBoardTellsNewsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := manyObjects(t, 3)
		b, _ := New(Options{Log: slog.New(slog.DiscardHandler), Statuses: func(*discovery.ObjectStatuses) *discovery.ObjectStatuses { return own }})
		for looks := range 3 {
			_, known, _ := b.Since(0)
			own = manyObjects(t, 4+looks)
			for range 1 + looks {
				time.Sleep(Age)
				b.Recent()
			}
			if keys, _, _ := b.Since(known); len(keys) == 0 {
				t.Errorf("after %d looks nothing is new", 1+looks)
			}
		}
	})
}

func manyObjects(t testing.TB, n int) *discovery.ObjectStatuses {
	t.Helper()
	kind, _ := schema.KindByName("RouteRule")
	own := &discovery.ObjectStatuses{Revision: 1}
	for i := range n {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("rule-%d", i), Namespace: "default", ResourceVersion: "1"}
		o, err := schema.New(kind, meta, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		own.Objects = append(own.Objects, o)
	}
	return own
}

// BenchmarkStatusBoard measures a refresh of 10,000 unchanged objects.
func BenchmarkStatusBoard(b *testing.B) {
	own := manyObjects(b, 10_000)
	board := newTable().next(own, peerSnapshot{})
	b.ReportAllocs()
	for b.Loop() {
		if next := board.next(own, peerSnapshot{}); next.version != board.version {
			b.Fatal("it has found something new")
		}
	}
}
