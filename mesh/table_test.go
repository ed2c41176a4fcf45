package mesh

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestTable: a table is what a map would be, and its earlier versions stay as they
// were. Many keys begin with other keys.
func TestTable(t *testing.T) {
	keys := rapid.StringMatching(`[ab]{0,6}`)
	rapid.Check(t, func(rt *rapid.T) {
		var versions []table[int]
		var want []map[string]int
		var last table[int]
		now, used := map[string]int{}, map[string]bool{}
		for range 4 {
			d := last.draft()
			for range rapid.IntRange(0, 200).Draw(rt, "edits") {
				key := keys.Draw(rt, "key")
				used[key] = true
				if rapid.IntRange(0, 2).Draw(rt, "remove") == 0 {
					d.remove(key)
					delete(now, key)
					continue
				}
				value := rapid.IntRange(1, 1000).Draw(rt, "value")
				d.set(key, value)
				now[key] = value
				if got := d.get(key); got != value {
					rt.Fatalf("the draft has %d for %q, want %d", got, key, value)
				}
			}
			last = d.done()
			versions, want = append(versions, last), append(want, maps.Clone(now))
		}
		for i, version := range versions {
			for key := range used {
				if got := version.get(key); got != want[i][key] {
					rt.Fatalf("version %d has %d for %q, want %d", i, got, key, want[i][key])
				}
			}
		}
	})
}

// BenchmarkTable looks up and changes one of 100,000 addresses.
func BenchmarkTable(b *testing.B) {
	keys := make([]string, 100_000)
	d := table[int]{}.draft()
	for i := range keys {
		keys[i] = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
		d.set(keys[i], i)
	}
	t := d.done()
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if key := i % len(keys); t.get(keys[key]) != key {
				b.Fatal("another value")
			}
		}
	})
	b.Run("set", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			d := t.draft()
			d.set(keys[i%len(keys)], i)
			t = d.done()
		}
	})
}
