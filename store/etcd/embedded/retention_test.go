package embedded

import (
	"fmt"
	"testing"
	"time"
)

func TestHorizon(t *testing.T) {
	start := time.Now()
	const mib = 1 << 20
	// Revision i turned bytes into history at i seconds.
	written := func(n int, bytes int64) *ledger {
		l := newLedger()
		l.add(1, []byte("a"), bytes, false, start)
		for i := 2; i <= n; i++ {
			l.add(int64(i), []byte("a"), bytes, false, start.Add(time.Duration(i)*time.Second))
		}
		return l
	}
	r := retention{revisions: 100, bytes: 64 * mib, age: time.Hour, quota: 1000 * mib}
	for _, c := range []struct {
		name   string
		ledger *ledger
		used   int64
		after  time.Duration // of the last write
		want   int64
	}{
		{"nothing written", newLedger(), 0, 0, 0},
		{"few and small", written(50, 1000), 50_000, time.Minute, 0},
		{"a few too many", written(110, 1000), 0, time.Minute, 0},
		{"too many", written(130, 1000), 0, time.Minute, 30},
		{"too many, just now", written(130, 1000), 0, -110 * time.Second, 18},
		{"too many bytes", written(70, mib), 0, time.Minute, 22},
		{"too old", written(50, 1000), 0, 2 * time.Hour, 50},
		{"one large value", written(2, 500*mib), 0, time.Minute, 2},
		{"crowded", written(50, mib), 820 * mib, time.Minute, 29},
		{"crowded by present state", written(3, mib), 900 * mib, time.Minute, 0},
		{"urgent", written(3, mib), 960 * mib, time.Minute, 3},
		{"urgent, just now", written(3, mib), 960 * mib, time.Second, 2},
		{"full without history", written(1, mib), 1000 * mib, time.Minute, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			last := time.Duration(len(c.ledger.past)) * time.Second
			if got := r.horizon(c.ledger, c.used, start.Add(last+c.after)); got != c.want {
				t.Errorf("forget up to %d, want %d", got, c.want)
			}
		})
	}
}

func TestLedger(t *testing.T) {
	now := time.Now()
	l := newLedger()
	l.add(1, []byte("a"), 10, false, now)
	l.add(1, []byte("b"), 20, false, now)
	l.add(2, []byte("a"), 11, false, now)
	l.add(3, []byte("b"), 1, true, now)
	if l.live != 11 || l.history != 10+20+1 || len(l.past) != 3 {
		t.Errorf("present %d, history %d in %v", l.live, l.history, l.past)
	}
	l.forget(2)
	if l.live != 11 || l.history != 21 || len(l.past) != 1 {
		t.Errorf("after forgetting: present %d, history %d in %v", l.live, l.history, l.past)
	}
}

func TestShouldDefragment(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		size, used int64
		want       bool
	}{
		{4 * gib, gib / 4, true},
		{4 * gib, 3 * gib, false},
		{gib, gib / 4, false}, // Too little to gain.
	} {
		t.Run(fmt.Sprintf("%d of %d", c.used, c.size), func(t *testing.T) {
			if got := shouldDefragment(c.size, c.used); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestShouldPack(t *testing.T) {
	for _, c := range []struct {
		name                string
		used, content, most int64
		want                bool
	}{
		{"much deleted, few pages free", 1600, 900, 1500, true},
		{"nothing deleted", 1600, 1200, 1200, false},
		{"little deleted since the last time", 1600, 1000, 1050, false},
		{"all deleted gave its pages free", 1000, 950, 1500, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shouldPack(c.used, c.content, c.most, 1600); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
