package mesh

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestTable: a table is what a map would be, and its versions before stay as
// they were.
func TestTable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var versions []table[int, int]
		var want []map[int]int
		var last table[int, int]
		now := map[int]int{}
		for range 4 {
			d := last.draft()
			for range rapid.IntRange(0, 200).Draw(rt, "edits") {
				key := rapid.IntRange(0, 300).Draw(rt, "key")
				if rapid.IntRange(0, 2).Draw(rt, "remove") == 0 {
					d.remove(key)
					delete(now, key)
					continue
				}
				value := rapid.IntRange(1, 1000).Draw(rt, "value")
				d.set(key, value)
				now[key] = value
				if got := d.get(key); got != value {
					rt.Fatalf("the draft has %d for %d, want %d", got, key, value)
				}
			}
			last = d.done()
			versions, want = append(versions, last), append(want, maps.Clone(now))
		}
		for i, version := range versions {
			for key := range 301 {
				if got := version.get(key); got != want[i][key] {
					rt.Fatalf("version %d has %d for %d, want %d", i, got, key, want[i][key])
				}
			}
		}
	})
}
