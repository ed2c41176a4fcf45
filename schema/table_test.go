package schema

import (
	"slices"
	"testing"
	"time"
)

func TestLongListsAreCutOffUnlessWide(t *testing.T) {
	text := `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: x}
spec: {hosts: [a.com, b.com, c.com, d.com, e.com], http: [{redirect: {uri: /}}]}
`
	o, list := Decode([]byte(text), Options{})
	if list.Err() != nil {
		t.Fatal(list)
	}
	const hosts = 2
	if got, want := TableCells(o, time.Now())[hosts], "a.com,b.com,c.com …and 2 more"; got != want {
		t.Errorf("cell %q, want %q", got, want)
	}
	if got, want := WideTableCells(o, time.Now())[hosts], "a.com,b.com,c.com,d.com,e.com"; got != want {
		t.Errorf("wide cell %q, want %q", got, want)
	}
}

// -o wide is worth typing for every kind.
func TestEveryKindHasWideColumns(t *testing.T) {
	for _, k := range Kinds() {
		if k.Kind == "EgressRule" || k.Flat {
			continue // Their few fields are all shown anyway.
		}
		if !slices.ContainsFunc(k.Columns, func(c Column) bool { return c.Wide }) {
			t.Errorf("%s shows the same table with -o wide", k.Kind)
		}
	}
}
