package query_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile/query"
)

// rows is a graph in which a row reads that many cells, and may break off.
type rows struct {
	graph *query.Graph
	in    *query.Input[int, int]
	row   *query.Query[int, int]
}

func newRows(q *query.Quota) *rows {
	g := query.NewGraphWithin(q)
	r := &rows{graph: g, in: query.NewInput[int, int](g)}
	cell := query.New(g, equal, func(reader *query.Reader, n int) int { return r.in.Get(reader, n) + 1 })
	r.row = query.New(g, equal, func(reader *query.Reader, n int) int {
		sum := 0
		for i := range n {
			sum += cell.Get(reader, i)
		}
		return sum
	})
	return r
}

func (r *rows) keep(ctx context.Context, l query.Limits, n int) (sum int, err error) {
	r.graph.Do(func(reader *query.Reader) {
		if err = r.graph.Try(ctx, l, func() { sum = r.row.Keep(reader, n) }); err != nil {
			r.row.Drop(n)
		}
	})
	return sum, err
}

// TestTry: what is broken off leaves nothing, and is computed when there is room.
func TestTry(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		what   string
		ctx    context.Context
		limits query.Limits
		want   error
	}{
		{"as many values as there may be", t.Context(), query.Limits{}, nil},
		{"a share that is not free", t.Context(), query.Limits{Share: 10}, query.ErrFull},
		{"as many steps as needed", t.Context(), query.Limits{Steps: 1000}, nil},
		{"too many steps", t.Context(), query.Limits{Steps: 50}, query.ErrDear},
		{"nobody waits", ended, query.Limits{}, context.Canceled},
	} {
		q := query.NewQuota(41)
		r := newRows(q)
		sum, err := r.keep(c.ctx, c.limits, 20) // 20 inputs, 20 cells and the row
		if !errors.Is(err, c.want) || err == nil && sum != 20 {
			t.Errorf("%s: %d, %v, want %v", c.what, sum, err, c.want)
		}
		want := 41
		if c.want != nil {
			want = 0
		}
		if q.Used() != want || r.graph.Size() != want {
			t.Errorf("%s: %d values of the quota are used, %d by the graph, want %d", c.what, q.Used(), r.graph.Size(), want)
		}
		if sum, err := r.keep(t.Context(), query.Limits{}, 20); err != nil || sum != 20 {
			t.Errorf("%s, and then without: %d, %v", c.what, sum, err)
		}
		if _, err := r.keep(t.Context(), query.Limits{}, 21); !errors.Is(err, query.ErrFull) || q.Used() != 41 {
			t.Errorf("%s, and then more than there may be: %v, %d used", c.what, err, q.Used())
		}
	}
}

// TestQuotaIsShared, and what is in a graph that nobody holds any more counts no
// longer.
func TestQuotaIsShared(t *testing.T) {
	q := query.NewQuota(50)
	first := newRows(q)
	if _, err := first.keep(t.Context(), query.Limits{}, 20); err != nil {
		t.Fatal(err)
	}
	second := newRows(q)
	if _, err := second.keep(t.Context(), query.Limits{}, 20); !errors.Is(err, query.ErrFull) {
		t.Errorf("two graphs that are too large together: %v", err)
	}
	runtime.KeepAlive(first)
	first, second = nil, nil
	for q.Used() > 0 {
		runtime.GC() // What it finds is told soon after.
		runtime.Gosched()
	}
}

// TestDiscard: what a graph held counts once less, also when the garbage collector
// finds the graph later.
func TestDiscard(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // Only Discard makes room.
	q := query.NewQuota(50)
	first, second := newRows(q), newRows(q)
	if _, err := first.keep(t.Context(), query.Limits{}, 20); err != nil {
		t.Fatal(err)
	}
	first.graph.Discard()
	first.graph.Discard()
	if _, err := second.keep(t.Context(), query.Limits{}, 20); err != nil || q.Used() != 41 {
		t.Errorf("after Discard: %v, %d used, want 41", err, q.Used())
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
}

// TestBrokenOffAsFromScratch: wherever computations are broken off, what is computed
// at last is what a graph computes that knows nothing.
func TestBrokenOffAsFromScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, sum := newRows(query.NewQuota(0)), 0
		values := map[int]int{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			at, value := rapid.IntRange(0, 9).Draw(t, "at"), rapid.IntRange(0, 3).Draw(t, "value")
			values[at] = value
			r.graph.Do(func(*query.Reader) { r.in.Set(at, value) })
			r.graph.Do(func(reader *query.Reader) {
				_ = r.graph.Try(context.Background(), query.Limits{Steps: rapid.IntRange(1, 40).Draw(t, "steps")}, func() { r.row.Keep(reader, 10) })
			})
		}
		r.graph.Do(func(reader *query.Reader) { sum = r.row.Keep(reader, 10) })
		want := 10
		for _, v := range values {
			want += v
		}
		if sum != want {
			t.Fatalf("%d, want %d", sum, want)
		}
	})
}
