package compile_test

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestChecksThatAreAskedForStay: what is asked for time and again is computed once, how
// often others are asked for in between, up to a bound, and how often it was itself.
func TestChecksThatAreAskedForStay(t *testing.T) {
	var objects []*schema.Object
	for i := range 200 {
		objects = append(objects, object(t, "RouteRule", fmt.Sprintf("r%d", i), spec{
			"destination": spec{"name": "nobody"}, "route": []spec{{"labels": spec{"version": "v1"}}},
		}))
	}
	compiler := compile.NewCompiler()
	compiler.Advance(mesh.NewSnapshot(1, mesh.DefaultSettings(), objects))
	ask := func(i int) (runs int64) {
		before := compiler.Runs()
		if len(compiler.ProblemsOf(map[diag.Ref]bool{objects[i].Key().Ref(): true})) == 0 {
			t.Fatalf("no problem of %s is known", objects[i].Key())
		}
		return compiler.Runs() - before
	}
	ask(0)
	for try := range 200 {
		if runs := ask(0); runs > 0 {
			t.Fatalf("%d computations when it was asked for %d times", runs, try+2)
		}
	}
	for other := 1; other < 200; other++ {
		ask(other)
		if runs := ask(0); runs > 0 {
			t.Fatalf("%d computations after %d others were asked for", runs, other)
		}
	}
	if ask(1) == 0 {
		t.Error("what was asked for long ago is there still")
	}
}
