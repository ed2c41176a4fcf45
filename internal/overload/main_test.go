package overload

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// programs is where pilot-api is built, once for all tests.
var programs string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if programs, err = os.MkdirTemp("", "overload-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(programs)
	return m.Run()
}

// build is nil once pilot-api is in programs.
var build = sync.OnceValue(func() error { return testbed.Build(programs, "pilot-api") })

func executable() string { return filepath.Join(programs, "pilot-api") }
