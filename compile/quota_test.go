package compile_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestRoomBesideThePresentMesh: the present mesh always has its room, another one has
// what that leaves, and gives it back by each way of its end.
func TestRoomBesideThePresentMesh(t *testing.T) {
	settings := mesh.DefaultSettings()
	settings.Budget = mesh.Budget{Object: 200, Mesh: 200}
	at := func(services int) *mesh.Snapshot { return mesh.NewSnapshot(1, settings, manyServices(t, services)) }
	small, large := at(5), at(19) // of 9 parts each, and one more
	proxyOf := func(c *compile.Compiler, s *mesh.Snapshot) error {
		_, _, err := c.ProxyWithin(t.Context(), s.TraitsOf(proxy(t, sidecarNode)))
		return err
	}
	quota := compile.NewQuota(0)
	beside := func(s *mesh.Snapshot) (*compile.Compiler, error) {
		c := compile.NewCompilerBeside(quota)
		c.Advance(s)
		return c, proxyOf(c, s)
	}
	present := compile.NewCompilerWithin(quota)
	present.Advance(small)
	var all []*compile.Compiler
	full := false
	for len(all) < 50 && !full {
		c, err := beside(large)
		if full = errors.Is(err, compile.ErrOverBudget); full {
			c.Close()
		} else if err != nil {
			t.Fatal(err)
		} else {
			all = append(all, c)
		}
	}
	if len(all) < 2 || !full || quota.Short() {
		t.Fatalf("%d meshes beside the present one; there is no more room: %v; it is short: %v", len(all), full, quota.Short())
	}
	if present.Advance(large); proxyOf(present, large) != nil || !quota.Short() {
		t.Error("the present mesh does not go before others")
	}
	if err := proxyOf(all[0], large); !errors.Is(err, compile.ErrOverBudget) {
		t.Errorf("a view that no room is left for: %v", err)
	}
	present.Advance(small)

	fits := func(after string) {
		t.Helper()
		c, err := beside(large)
		if c.Close(); err != nil {
			t.Errorf("after %s: %v", after, err)
		}
	}
	all[0].Release(large.TraitsOf(proxy(t, sidecarNode)).Key(), func() bool { return false })
	fits("Release")
	if err := proxyOf(all[0], large); err != nil {
		t.Errorf("a view that was released: %v", err)
	}
	all[0].Close()
	fits("Close")
	all = nil
	for present.Advance(at(38)); quota.Short(); {
		runtime.GC() // What it finds is told soon after.
		runtime.Gosched()
	}
}
