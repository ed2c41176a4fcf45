package compile_test

import (
	"runtime/debug"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestRoomForOneMeshOnly: other settings, or a compiler in place of a closed one, need no
// room beside what they replace, whether or not the garbage collector ran.
func TestRoomForOneMeshOnly(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	objects := manyServices(t, 20)
	compileIn := func(c *compile.Compiler, revision int64) error {
		s := mesh.NewSnapshot(revision, mesh.DefaultSettings(), objects)
		c.Advance(s)
		proxy, err := mesh.ParseProxy("sidecar~10.9.9.9~x.default~default.svc.cluster.local")
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = c.ProxyWithin(t.Context(), s.TraitsOf(proxy))
		return err
	}
	free := compile.NewQuota(0)
	alone := compile.NewCompilerWithin(free)
	if err := compileIn(alone, 1); err != nil {
		t.Fatal(err)
	}
	one := free.Used()
	alone.Close()
	if alone.Close(); free.Used() != 0 {
		t.Errorf("%d results count after Close", free.Used())
	}

	quota := compile.NewQuota(one * 3 / 2)
	c := compile.NewCompilerWithin(quota)
	for revision := range int64(3) {
		if err := compileIn(c, revision+1); err != nil {
			t.Fatalf("with settings of revision %d: %v", revision+1, err)
		}
	}
	c.Close()
	if err := compileIn(compile.NewCompilerWithin(quota), 1); err != nil {
		t.Errorf("in place of a closed one: %v", err)
	}
	if err := compileIn(c, 4); err == nil {
		t.Error("the quota bounds nothing")
	}
}
