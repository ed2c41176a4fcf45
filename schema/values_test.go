package schema

import (
	"strings"
	"testing"
)

// TestTooMany: values are counted, and what looks like them in texts is not.
func TestTooMany(t *testing.T) {
	fill := func(part string, n int) string { return strings.Repeat(part, n) }
	for name, c := range map[string]struct {
		text string
		many bool
	}{
		"short":                     {`{}`, false},
		"as many as there may be":   {`[` + fill("1,", MaxValues-2) + `1]`, false},
		"one more":                  {`[` + fill("1,", MaxValues-1) + `1]`, true},
		"empty lists":               {`{"a":[` + fill("[],", MaxValues/2) + `1]}`, true},
		"a text":                    {`{"a":"` + fill(`,\"[`, MaxValues) + `"}`, false},
		"members":                   {`{` + fill(`"a":1,`, MaxValues) + `"a":1}`, true},
		"YAML as long as it may be": {"a:\n" + fill("- b: ccccc\n", MaxValues/2-2), false},
		"YAML lines":                {fill("a: b\n", MaxValues), true},
		"YAML in one line":          {"a: [" + fill("b,", MaxValues) + "b]", true},
		"YAML dashes":               {fill("- ", MaxValues), true},
	} {
		if got := TooMany([]byte(c.text)); got != c.many {
			t.Errorf("%s: %t", name, got)
		}
	}
}
