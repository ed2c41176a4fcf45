package mesh

// tally counts names. It contains only names with a positive count.
type tally struct {
	times table[int]
	names *identity // changes whenever the set of names does
}

func (t tally) has(name string) bool { return t.times.get(name) > 0 }

// counted returns a tally in which some names, and all names that enclose them,
// have the given numbers added.
func counted(before tally, times map[string]int, around func(string) string) tally {
	d, others := before.times.draft(), false
	for name, n := range times {
		for n != 0 && name != "" {
			was := d.get(name)
			if now := was + n; now > 0 {
				d.set(name, now)
				others = others || was == 0
			} else {
				d.remove(name)
				others = true
			}
			name = around(name)
		}
	}
	out := tally{d.done(), before.names}
	if others || out.names == nil {
		out.names = new(identity)
	}
	return out
}
