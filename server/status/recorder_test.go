package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// keptInMemory is a Keeper that every server leads at once.
type keptInMemory struct {
	all     map[schema.Key]store.StoredStatus
	writes  []int // how many statuses each had
	at      []time.Time
	failing bool
}

func (k *keptInMemory) Lead(context.Context) (Writer, error) { return k, nil }

func (k *keptInMemory) Known() map[schema.Key]store.StoredStatus {
	known := map[schema.Key]store.StoredStatus{}
	for key, one := range k.all {
		known[key] = one
	}
	return known
}

func (k *keptInMemory) Write(_ context.Context, moved []store.StoredStatus, gone []schema.Key) error {
	if k.failing {
		return errors.New("out of reach")
	}
	for _, one := range moved {
		k.all[one.Key] = one
	}
	for _, key := range gone {
		delete(k.all, key)
	}
	k.writes, k.at = append(k.writes, len(moved)), append(k.at, time.Now())
	return nil
}

func (k *keptInMemory) Lost() <-chan struct{} { return nil }
func (k *keptInMemory) Close()                {}

// recordIn runs a Recorder over what the returned pointer holds.
func recordIn(t *testing.T, to Keeper, first *discovery.ObjectStatuses) (now *atomic.Pointer[discovery.ObjectStatuses], b *Board) {
	t.Helper()
	now = &atomic.Pointer[discovery.ObjectStatuses]{}
	now.Store(first)
	log := slog.New(slog.DiscardHandler)
	b, _ = New(Options{Log: log, Statuses: func(*discovery.ObjectStatuses) *discovery.ObjectStatuses { return now.Load() }})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- NewRecorder(b, to, log).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
	return now, b
}

// changed returns the objects at other revisions, and with another status of all if earlier
// proxies are awaited.
func changed(of *discovery.ObjectStatuses, awaited int, revision func(i int) int64) *discovery.ObjectStatuses {
	next := &discovery.ObjectStatuses{Revision: of.Revision, Returning: awaited}
	for i, o := range of.Objects {
		if n := revision(i); n != o.Revision() {
			o = o.AtRevision(n)
		}
		next.Objects = append(next.Objects, o)
	}
	return next
}

func unchanged(int) int64 { return 1 }

// TestRecorderWritesWhatMoved checks that the statuses of the board are stored in the end,
// however they move and whatever fails meanwhile; that nothing is written while nothing
// moves, or if everything is back within the interval; and that there is at most one write
// in an interval.
func TestRecorderWritesWhatMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &keptInMemory{all: map[schema.Key]store.StoredStatus{}}
		objects := manyObjects(t, 40)
		now, board := recordIn(t, to, objects)
		random := rand.New(rand.NewPCG(1, 2))
		same := func(step string) {
			t.Helper()
			time.Sleep(10 * recordInterval)
			synctest.Wait()
			table := board.Recent()
			if len(to.all) != len(table.entries) {
				t.Fatalf("%s: %d are stored, there are %d", step, len(to.all), len(table.entries))
			}
			for key, is := range table.entries {
				if one := to.all[key]; one.StatusText == nil || !sameStatus(one.Status, is.status) || one.Of != is.revision() {
					t.Fatalf("%s: of %s is stored %+v, it is %+v", step, key, one, is.status)
				}
			}
		}
		same("at first")
		for round := range 30 {
			to.failing = round%7 == 3
			for range random.IntN(6) {
				mask := random.Uint64()
				now.Store(changed(objects, random.IntN(2), func(i int) int64 { return 1 + int64(mask>>i&1) }))
				time.Sleep(time.Duration(random.Int64N(int64(recordInterval))))
			}
			to.failing = false
			same(fmt.Sprint("round ", round))
		}
		before := len(to.writes)
		present := now.Load()
		other := changed(objects, 1-present.Returning, func(i int) int64 { return present.Objects[i].Revision() })
		for range 20 {
			time.Sleep(10 * recordInterval)
			tick := to.at[len(to.at)-1] // All rounds are whole intervals away from it.
			time.Sleep(recordInterval + recordInterval/10 - time.Since(tick)%recordInterval)
			now.Store(other)
			time.Sleep(recordInterval / 3)
			now.Store(present)
		}
		same("back again")
		if n := len(to.writes) - before; n > 0 {
			t.Errorf("written %d times", n)
		}
		before = len(to.writes)
		same("later")
		if len(to.writes) != before {
			t.Error("written although nothing moved")
		}
		for i := 1; i < len(to.at); i++ {
			if pause := to.at[i].Sub(to.at[i-1]); pause < recordInterval {
				t.Errorf("written again after %s", pause)
			}
		}
	})
}

// TestRecorderHasABudget checks that a storm of statuses takes no more of the log of changes
// than it may, and that a new object does not wait behind it.
func TestRecorderHasABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &keptInMemory{all: map[schema.Key]store.StoredStatus{}}
		objects := manyObjects(t, 6_001)
		last := objects.Objects[6_000]
		objects.Objects = objects.Objects[:6_000]
		now, _ := recordIn(t, to, objects)
		time.Sleep(2 * time.Minute)
		begin, before := time.Now(), len(to.writes)
		for round := range 24 {
			next := changed(objects, 1-round%2, unchanged)
			if round == 20 {
				next.Objects = append(next.Objects[:6_000:6_000], last)
				objects = next
			}
			now.Store(next)
			time.Sleep(5 * time.Second)
			if round == 20 {
				synctest.Wait()
				if to.all[last.Key()].StatusText == nil {
					t.Error("the new object waits")
				}
			}
		}
		written := 0
		for _, n := range to.writes[before:] {
			written += n
		}
		if most := recordBurst + int(recordRate*time.Since(begin).Seconds()) + 1; written > most || written < most/2 {
			t.Errorf("%d statuses were written in %s, at most %d may be", written, time.Since(begin), most)
		}
	})
}

// TestRecorderKeepsTimes checks that a condition keeps its time when another server takes
// over, and that this alone is no change.
func TestRecorderKeepsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &keptInMemory{all: map[schema.Key]store.StoredStatus{}}
		objects := manyObjects(t, 1)
		key := objects.Objects[0].Key()
		recordIn(t, to, objects)
		time.Sleep(3 * recordInterval)
		synctest.Wait()
		first := to.all[key]
		time.Sleep(time.Hour)
		now, _ := recordIn(t, to, objects)
		time.Sleep(3 * recordInterval)
		synctest.Wait()
		if len(to.writes) != 1 {
			t.Errorf("written %v", to.writes)
		}
		now.Store(changed(objects, 1, unchanged))
		time.Sleep(3 * recordInterval)
		synctest.Wait()
		next := to.all[key]
		for _, kind := range []string{schema.ConditionAccepted, schema.ConditionProgrammed} {
			is, was := next.Condition(kind), first.Condition(kind)
			if kept := is.LastTransitionTime.Equal(&was.LastTransitionTime); kept != (is.Status == was.Status) {
				t.Errorf("%s is %s since %s, was %s since %s", kind, is.Status, is.LastTransitionTime, was.Status, was.LastTransitionTime)
			}
		}
	})
}

// TestLongStatusesAreCut checks that a stored status has a bounded length, and that a cut one
// counts as the whole one.
func TestLongStatusesAreCut(t *testing.T) {
	var status schema.Status
	for _, kind := range []string{schema.ConditionAccepted, schema.ConditionResolved, schema.ConditionProgrammed} {
		status.Conditions = append(status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: kind, Message: strings.Repeat("<é", 20_000)})
	}
	of := &entry{resourceVersion: "7", internedStatus: &internedStatus{status, textOf(status)}}
	key := manyObjects(t, 1).Objects[0].Key()
	one, _ := moveOf(key, of, store.StoredStatus{})
	if len(one.JSON) > store.MaxStoredStatus || len(one.JSON) < store.MaxStoredStatus/8 || !json.Valid(one.JSON) || one.Of != 7 {
		t.Errorf("stored are %d bytes: %s", len(one.JSON), one.JSON)
	}
	if !utf8.ValidString(one.Conditions[0].Message) {
		t.Errorf("not UTF-8: %q", one.Conditions[0].Message)
	}
	if _, differs := moveOf(key, of, one.StoredStatus); differs {
		t.Error("it is written again")
	}
}
