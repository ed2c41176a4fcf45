package e2e

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

const root = "../.."

func TestMain(m *testing.M) {
	testbed.RunMember()
	code := m.Run()
	os.RemoveAll(built.dir)
	os.Exit(code)
}

// built are the programs of the working tree.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// programs builds the programs, once. The Envoy is not among them.
func programs(t testing.TB) Programs {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "pilot-e2e-"); built.err == nil {
			built.err = testbed.Build(built.dir, "pilot-api", "istioctl")
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return Programs{
		PilotAPI: filepath.Join(built.dir, "pilot-api"),
		Istioctl: filepath.Join(built.dir, "istioctl"),
	}
}

// open opens a world that is closed, after all other cleanups, with the test.
func open(t *testing.T, s Setting, enter entrance) *World {
	t.Helper()
	p := programs(t)
	p.Envoy = outside.Tool(t, "envoy")
	// The programs outlive t.Context, so that they end in order in Close.
	w, err := openWorld(context.WithoutCancel(t.Context()), p, s, t.TempDir(), enter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("pilot-api:\n%s\nEnvoy:\n%s", w.Pilot.Tail(), w.Sidecar.Tail())
		}
	})
	return w
}

// openPilot starts a server that ends with the test.
func openPilot(t *testing.T, args ...string) *Pilot {
	t.Helper()
	pilot, err := StartPilot(context.WithoutCancel(t.Context()), programs(t), t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pilot.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("pilot-api:\n%s", pilot.Tail())
		}
	})
	return pilot
}
