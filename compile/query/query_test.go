package query_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile/query"
)

func equal[V comparable](a, b V) bool { return a == b }

// sheet is a small world: numbers in cells, sums over cells that are named by
// another cell, so that what a sum reads changes with what it reads.
type sheet struct {
	graph  *query.Graph
	number *query.Input[string, int]
	length *query.Input[string, int]
	half   *query.Query[string, int]
	sum    *query.Query[string, int]
	total  *query.Query[int, int]
	runs   []string
}

func newSheet() *sheet {
	g := query.NewGraph()
	s := &sheet{graph: g, number: query.NewInput[string, int](g), length: query.NewInput[string, int](g)}
	s.half = query.New(g, equal, func(r *query.Reader, key string) int {
		s.runs = append(s.runs, "half "+key)
		return s.number.Get(r, key) / 2
	})
	s.sum = query.New(g, equal, func(r *query.Reader, row string) int {
		s.runs = append(s.runs, "sum "+row)
		sum := 0
		for i := range s.length.Get(r, row) {
			sum += s.half.Get(r, fmt.Sprint(row, i))
		}
		return sum
	})
	s.total = query.New(g, equal, func(r *query.Reader, rows int) int {
		s.runs = append(s.runs, "total")
		total := 0
		for i := range rows {
			total += s.sum.Get(r, string(rune('a'+i)))
		}
		return total
	})
	return s
}

func (s *sheet) set(in *query.Input[string, int], key string, value int) {
	s.graph.Do(func(*query.Reader) { in.Set(key, value) })
}

// ask is the total, and what was computed to know it.
func (s *sheet) ask() (total int, runs []string) {
	s.runs = nil
	s.graph.Do(func(r *query.Reader) { total = s.total.Keep(r, 2) })
	return total, s.runs
}

func (s *sheet) want(t *testing.T, total int, runs ...string) {
	t.Helper()
	got, ran := s.ask()
	if got != total || !slices.Equal(ran, runs) {
		t.Errorf("total %d after %q, want %d after %q", got, ran, total, runs)
	}
}

// TestCostFollowsTheChange: what a change concerns is computed again, as far as
// results differ, and nothing else.
func TestCostFollowsTheChange(t *testing.T) {
	s := newSheet()
	s.set(s.length, "a", 2)
	s.set(s.length, "b", 1)
	s.set(s.number, "a0", 10)
	s.set(s.number, "b0", 6)
	s.want(t, 8, "total", "sum a", "half a0", "half a1", "sum b", "half b0")
	s.want(t, 8)
	s.set(s.number, "a0", 20)
	s.want(t, 13, "half a0", "sum a", "total")
	s.set(s.number, "a0", 21)
	s.want(t, 13, "half a0")
	s.set(s.number, "a0", 21)
	s.set(s.number, "c0", 100)
	s.want(t, 13)
	s.set(s.number, "a1", 4)
	s.set(s.number, "b0", 2)
	s.want(t, 13, "half a1", "sum a", "total", "half b0", "sum b") // 12 + 1, but none of them could know.
	s.set(s.length, "a", 1)
	s.want(t, 11, "sum a", "total")
}

// TestNothingStaysUnused: what no kept result depends on is dropped.
func TestNothingStaysUnused(t *testing.T) {
	s := newSheet()
	s.set(s.length, "a", 50)
	s.ask()
	if s.half.Len() != 50 {
		t.Fatalf("%d results", s.half.Len())
	}
	s.set(s.length, "a", 3)
	if s.ask(); s.half.Len() != 3 {
		t.Errorf("%d results are kept of rows that are gone", s.half.Len())
	}
	s.graph.Do(func(r *query.Reader) { s.half.Get(r, "z9") })
	if s.half.Len() != 3 {
		t.Errorf("%d results, though the last was asked for once", s.half.Len())
	}
	s.graph.Do(func(*query.Reader) { s.total.Drop(2) })
	if n := s.half.Len() + s.sum.Len() + s.total.Len(); n != 0 {
		t.Errorf("%d results are left", n)
	}
}

// TestPanic: a query that panics is tried again by the next reader, and what
// was known stays.
func TestPanic(t *testing.T) {
	g := query.NewGraph()
	in := query.NewInput[string, int](g)
	half := query.New(g, equal, func(r *query.Reader, key string) int {
		if in.Get(r, key) < 0 {
			panic("negative")
		}
		return in.Get(r, key) / 2
	})
	both := query.New(g, equal, func(r *query.Reader, _ int) int { return half.Get(r, "a") + half.Get(r, "b") })
	ask := func() (sum int, panicked any) {
		defer func() { panicked = recover() }()
		g.Do(func(r *query.Reader) { sum = both.Keep(r, 0) })
		return sum, nil
	}
	set := func(key string, value int) { g.Do(func(*query.Reader) { in.Set(key, value) }) }
	set("a", 2)
	set("b", -2)
	for range 2 {
		if _, panicked := ask(); panicked == nil {
			t.Fatal("no panic")
		}
	}
	set("b", 4)
	if sum, panicked := ask(); sum != 3 || panicked != nil {
		t.Errorf("sum %d, %v", sum, panicked)
	}
	set("b", -1)
	ask()
	set("a", 8)
	set("b", 4)
	if sum, panicked := ask(); sum != 6 || panicked != nil {
		t.Errorf("sum %d, %v", sum, panicked)
	}
}

func TestCircle(t *testing.T) {
	g := query.NewGraph()
	var even *query.Query[int, bool]
	odd := query.New(g, equal, func(r *query.Reader, n int) bool { return !even.Get(r, n) })
	even = query.New(g, equal, func(r *query.Reader, n int) bool { return !odd.Get(r, n) })
	defer func() {
		if recover() == nil {
			t.Error("a circle was computed")
		}
	}()
	g.Do(func(r *query.Reader) { odd.Get(r, 1) })
}

// TestAsFromScratch: whatever is changed in whatever order, and however seldom
// somebody asks, the answer is the one of a graph that knows nothing.
func TestAsFromScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSheet()
		numbers, lengths := map[string]int{}, map[string]int{}
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			row := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "row")
			value := rapid.IntRange(0, 5).Draw(t, "value")
			if rapid.Bool().Draw(t, "length") {
				lengths[row] = value
				s.set(s.length, row, value)
			} else {
				key := fmt.Sprint(row, rapid.IntRange(0, 5).Draw(t, "column"))
				numbers[key] = value
				s.set(s.number, key, value)
			}
			if rapid.Bool().Draw(t, "drop") {
				s.graph.Do(func(*query.Reader) { s.total.Drop(2) })
			}
			if !rapid.Bool().Draw(t, "ask") {
				continue
			}
			want := 0
			for _, row := range []string{"a", "b"} {
				for i := range lengths[row] {
					want += numbers[fmt.Sprint(row, i)] / 2
				}
			}
			if got, _ := s.ask(); got != want {
				t.Fatalf("total %d, want %d", got, want)
			}
		}
	})
}

// TestManyReaders: of a value that all read, and that fewer and fewer do, each
// reader hears of a change, and nobody else does.
func TestManyReaders(t *testing.T) {
	g := query.NewGraph()
	in := query.NewInput[string, int](g)
	runs := map[int]int{}
	plus := query.New(g, equal, func(r *query.Reader, n int) int {
		runs[n]++
		return in.Get(r, "common") + n
	})
	const many = 30
	for left := many; left >= 0; left -= 5 {
		g.Do(func(r *query.Reader) {
			in.Set("common", 1000+left)
			for n := range many {
				if n >= left {
					plus.Drop(n)
				} else if got := plus.Keep(r, n); got != 1000+left+n {
					t.Fatalf("%d of %d: %d", n, left, got)
				}
			}
		})
		if plus.Len() != left {
			t.Fatalf("%d results, want %d", plus.Len(), left)
		}
	}
	for n, times := range runs {
		if want := (many - n - 1) / 5; times != want+1 {
			t.Errorf("%d was computed %d times, want %d", n, times, want+1)
		}
	}
}

// TestWhatPanickedIsDropped, with what it read, unless it is kept.
func TestWhatPanickedIsDropped(t *testing.T) {
	g := query.NewGraph()
	in := query.NewInput[string, int](g)
	bad := query.New(g, equal, func(r *query.Reader, key string) int { panic(in.Get(r, key)) })
	above := query.New(g, equal, func(r *query.Reader, key string) int { return bad.Get(r, key) })
	for _, key := range []string{"a", "b"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			g.Do(func(r *query.Reader) { above.Get(r, key) })
		}()
	}
	if g.Size() > 0 || above.Len() > 0 || bad.Len() > 0 {
		t.Errorf("%d values are left, %d and %d of them results", g.Size(), above.Len(), bad.Len())
	}
}
