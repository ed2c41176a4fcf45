package status

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// counting returns a cachedProbe that counts its probes.
func counting(log *slog.Logger, during func(count int)) *cachedProbe[int] {
	first := 0
	return newCachedProbe("numbers", log, &first, func(before *int, _ time.Time) (*int, time.Duration) {
		next := *before + 1
		during(next)
		return &next, 0
	})
}

// TestNobodyWaitsForALook checks that during a probe other callers get the previous
// result, unless that is too old or they ask for the current state.
func TestNobodyWaitsForALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		l := counting(slog.New(slog.DiscardHandler), func(count int) {
			if count > 1 {
				<-slow
			}
		})
		if got := *l.recent(); got != 1 {
			t.Fatalf("the first look found %d", got)
		}
		time.Sleep(Age)
		go l.recent()
		synctest.Wait()
		if got := *l.recent(); got != 1 {
			t.Errorf("while one looks it is %d", got)
		}
		var now, late int
		go func() { now = *l.after(t.Context(), time.Now()) }()
		time.Sleep(4 * Age)
		go func() { late = *l.recent() }()
		synctest.Wait()
		if now != 0 || late != 0 {
			t.Errorf("answered with %d and %d before the look has ended", now, late)
		}
		close(slow)
		synctest.Wait()
		if now != 3 || late < 2 {
			t.Errorf("found %d by who asked after the second look began, %d by who could not do with the first", now, late)
		}
	})
}

// TestNobodyWaitsForALookInVain checks that a long probe does not hold a caller
// that gives up.
func TestNobodyWaitsForALookInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		l := counting(slog.New(slog.DiscardHandler), func(int) { <-slow })
		go l.recent()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := *l.after(ctx, time.Now()); got != 0 {
			t.Errorf("found %d before a look has ended", got)
		}
		close(slow)
	})
}

// TestLookThatPanics checks that the previous result stays, that the log has one
// line, and that the next successful probe counts again.
func TestLookThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		broken := false
		l := counting(slog.New(slog.NewTextHandler(&log, nil)), func(int) {
			if broken {
				panic("a mistake")
			}
		})
		l.recent()
		broken = true
		for range 3 {
			time.Sleep(Age)
			if got := *l.recent(); got != 1 {
				t.Errorf("found %d by a look that failed", got)
			}
		}
		if told := strings.Count(log.String(), "a mistake"); told != 1 {
			t.Errorf("told %d times:\n%s", told, log.String())
		}
		broken = false
		time.Sleep(Age)
		if got := *l.recent(); got != 2 {
			t.Errorf("healed it found %d", got)
		}
		broken = true
		time.Sleep(Age)
		l.recent()
		if told := strings.Count(log.String(), "a mistake"); told != 2 {
			t.Errorf("the next mistake was told %d times", told-1)
		}
	})
}

// TestLooksTakeATenth checks that longer probes run less often, also for another
// replica. A caller that asks for the current state waits for it all the same. Time
// spent waiting for others does not count.
func TestLooksTakeATenth(t *testing.T) {
	here := (*cachedProbe[int]).recent
	elsewhere := func(l *cachedProbe[int]) *int { return l.within(context.Background(), Age) }
	for name, of := range map[string]struct {
		ask         func(*cachedProbe[int]) *int
		waited      time.Duration
		least, most int
	}{"own work": {here, 0, 9, 11}, "waiting": {here, time.Second, 60, 100}, "for another replica": {elsewhere, 0, 9, 11}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looks := 0
				l := newCachedProbe("numbers", slog.New(slog.DiscardHandler), &looks, func(*int, time.Time) (*int, time.Duration) {
					time.Sleep(time.Second)
					looks++
					return &looks, of.waited
				})
				for begin := time.Now(); time.Since(begin) < 100*time.Second; time.Sleep(Age) {
					of.ask(l)
				}
				if looks < of.least || looks > of.most {
					t.Errorf("looked %d times for a second each in 100 seconds", looks)
				}
				before := looks
				l.after(context.Background(), time.Now())
				l.within(context.Background(), 0)
				if looks != before+2 {
					t.Error("who asks for what is so now is answered with what was so before")
				}
			})
		})
	}
}
