package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestPlacesAreFoundInOnePass: however many places of a text are asked for, each line
// and each map is gone over once, and beside that no more than a part of a line for
// each place.
func TestPlacesAreFoundInOnePass(t *testing.T) {
	const items = 2000
	for name, text := range map[string]string{
		"lines":           "items:\n" + strings.Repeat("- {é: 1}\n", items),
		"one line":        "items: [" + strings.Repeat("{é: 1}, ", items) + "]\n",
		"many names":      manyNames(items) + "items:\n" + strings.Repeat("- {é: 1}\n", items),
		"many empty ones": strings.Repeat("\n", items) + "items:\n" + strings.Repeat("- {é: 1}\n", items),
	} {
		t.Run(name, func(t *testing.T) {
			var root yaml.Node
			if err := yaml.Unmarshal([]byte(text), &root); err != nil {
				t.Fatal(err)
			}
			p := places{doc: Document{Text: []byte(text)}}
			for i := range items {
				_, list := p.child(root.Content[0], "items")
				_, item := p.child(list, fmt.Sprint(i))
				key, _ := p.child(item, "é")
				at := p.position(key.Line, key.Column)
				if line := p.line(at.Line - 1); !strings.HasPrefix(string(line[at.Column-1:]), "é") {
					t.Fatalf("item %d is found at %s", i, at)
				}
			}
			if most := 4*len(text) + items*2*2*columnStep; p.visited > most {
				t.Errorf("%d bytes and names were gone over for %d places in %d bytes, want at most %d", p.visited, items, len(text), most)
			}
		})
	}
}

func manyNames(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "a_name%d: 1\n", i)
	}
	return out.String()
}

// TestProblemsOfAListAreBounded: a List of any length whose items are all wrong has as
// many problems as a text may have, and work on the rest is not done.
func TestProblemsOfAListAreBounded(t *testing.T) {
	allocs := func(items int) float64 {
		text := "apiVersion: v1\nkind: List\nitems:\n" + strings.Repeat("- {a: 1}\n", items)
		d, problems := (Document{Text: []byte(text)}).parse()
		if problems != nil {
			t.Fatal(problems)
		}
		list, _ := listItems(d.value)
		return testing.AllocsPerRun(2, func() {
			_, problems, err := d.items(t.Context(), list, nil, "")
			if err != nil || len(problems) > mostProblems+10 {
				t.Fatalf("%d problems, %v", len(problems), err)
			}
			last := problems[len(problems)-1]
			if want := "items were not read"; !strings.Contains(last.Message, want) || last.Position.Line != 3 {
				t.Fatalf("the last problem is %s, want one that says %q", last, want)
			}
		})
	}
	if few, many := allocs(200), allocs(4000); many > few+100 {
		t.Errorf("%v allocations for 200 items, %v for 4000", few, many)
	}
}

// counted ends after some questions.
type counted struct {
	context.Context
	left int
}

func (c *counted) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestObjectsEndWithTheirContext: no more items are read for nobody.
func TestObjectsEndWithTheirContext(t *testing.T) {
	const item = "- {apiVersion: config.istio.io/v1alpha2, kind: RouteRule, metadata: {name: x%d}, spec: {destination: {name: a}}}\n"
	text := "kind: List\nitems:\n"
	for i := range 50 {
		text += fmt.Sprintf(item, i)
	}
	doc := Document{Text: []byte(text)}
	if objects, _, err := doc.Objects(&counted{t.Context(), 10}, ""); !errors.Is(err, context.Canceled) || objects != nil {
		t.Errorf("%d objects, %v", len(objects), err)
	}
	if objects, _, err := doc.Objects(&counted{t.Context(), 1000}, ""); err != nil || len(objects) != 50 {
		t.Errorf("%d objects, %v", len(objects), err)
	}
}
