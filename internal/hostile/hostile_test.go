// Package hostile judges the budgets of docs/decisions/033-budgets.md. It draws
// objects that are valid one by one and cost as much as they can together, gives them
// to a real pilot-api that may take 512 MiB, and looks at what becomes of the server
// and of everybody else.
//
//	hostile_test.go   the test, its flags, and what a failure prints
//	draw_test.go      numbers, texts and lists from a seed
//	registry_test.go  shapes of ServiceEntries, WorkloadEntries and EgressRules
//	rules_test.go     shapes of VirtualServices and DestinationRules
//	edges_test.go     shapes of Gateways and Sidecars
//	old_test.go       shapes of the kinds of Istio 0.x
//	quiet_test.go     the honest mesh, and its proxies
//	proxy_test.go     what a proxy is answered
//	server_test.go    a pilot-api with a memory limit
//	life_test.go      the life of a server through some combinations
//	judge_test.go     what is found wrong with a combination
//	seen_test.go      that it is found
package hostile

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

var (
	combinations = flag.Int("combinations", 8, "how many combinations of hostile objects are judged")
	seed         = flag.Uint64("seed", 1, "what the combinations of the first server are drawn from; that of the next server is one higher")
	only         = flag.String("shape", "", "the only shape of objects that is drawn, such as routes")
	processes    = flag.Int("processes", min(4, runtime.GOMAXPROCS(0)), "how many servers are judged at once")
)

// perLife is how many combinations one server goes through, one after the other: what is
// left of one must not add to what the next one takes.
const perLife = 4

// TestHostileObjects: no combination of valid objects makes a server exceed its memory
// limit or withhold what is honest, and each object that is withheld is named.
func TestHostileObjects(t *testing.T) {
	outside.Slow(t)
	var lives errgroup.Group
	lives.SetLimit(*processes)
	var found tally
	for i := 0; i*perLife < *combinations && found.failed.Load() < mostFailures; i++ {
		lives.Go(func() error {
			l := newLife(*seed+uint64(i), min(perLife, *combinations-i*perLife))
			if complaints := l.run(t); len(complaints) > 0 {
				found.failed.Add(1)
				t.Errorf("%s\n%s", l.again(), complaints)
			}
			found.add(t, l)
			return nil
		})
	}
	_ = lives.Wait()
	found.report(t)
}

// fatal are seeds of servers that were killed before.
var fatal = []uint64{
	101448, // States of the past were compiled beside a mesh that used up its budget.
}

// TestFatalObjects: what once killed a server does so no more.
func TestFatalObjects(t *testing.T) {
	outside.Slow(t)
	for _, seed := range fatal {
		l := newLife(seed, perLife)
		if complaints := l.run(t); len(complaints) > 0 {
			t.Errorf("%s\n%s", l.again(), complaints)
		}
	}
}

// mostFailures is how many servers may fail before no more are judged.
const mostFailures = 25

// tally is what all combinations came to.
type tally struct {
	failed atomic.Int64

	mu       sync.Mutex
	judged   int // combinations
	objects  int // written or stored
	refused  int
	withheld int
	most     int64 // bytes
	largest  string
}

func (f *tally) add(t *testing.T, l *life) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.judged += l.judged
	f.objects += l.objects
	f.refused += l.refused
	f.withheld += l.withheld
	if l.peak > f.most {
		f.most, f.largest = l.peak, l.again()
	}
	if before := f.judged - l.judged; before/1000 < f.judged/1000 {
		t.Logf("%d combinations are judged", f.judged)
	}
}

// report fails where a long run has seen nothing of what it is to judge.
func (f *tally) report(t *testing.T) {
	t.Logf("%d combinations of %d objects: %d were refused, %d withheld; a server had %d MiB at most (%s)",
		f.judged, f.objects, f.refused, f.withheld, f.most>>20, f.largest)
	if f.judged >= 20 && (f.refused == 0 || f.withheld == 0) {
		t.Error("the objects are not hostile: none was refused, or none was withheld")
	}
}

// again is the command that goes through the life once more.
func (l *life) again() string {
	command := fmt.Sprintf("go test ./internal/hostile -run TestHostileObjects -v -seed %d -combinations %d", l.seed, l.combinations)
	if *only != "" {
		command += " -shape " + *only
	}
	return command
}

// programs is where pilot-api is built, once for all tests.
var programs string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if programs, err = os.MkdirTemp("", "hostile-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(programs)
	return m.Run()
}

// build is nil once pilot-api is in programs.
var build = sync.OnceValue(func() error { return testbed.Build(programs, "pilot-api") })

func executable() string { return filepath.Join(programs, "pilot-api") }
