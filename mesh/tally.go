package mesh

// tally is names, and how many state each of them. One that nobody states is not
// there.
type tally struct {
	times table[string, int]
	names *identity // another one when there are others
}

func (t tally) has(name string) bool { return t.times.get(name) > 0 }

// counted is a tally in which some names, and with them all that are around them,
// are stated so many times more.
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
