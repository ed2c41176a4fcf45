package overload

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/internal/outside"
)

var soak = flag.Duration("soak", 0, "how long TestGreedyNeighbours measures honest clients without greedy ones and then beside them; it then judges how long requests take, too")

const (
	// mostRatio is how many times as long as without greedy clients the slowest
	// hundredth of honest requests may take beside them.
	mostRatio = 3
	// mostSoakMemory is what the process may ever have, in MiB: what streams may make it
	// have, and what six objects within the budget of one are made into.
	mostSoakMemory = 2048
)

// TestGreedyNeighbours: honest clients are served beside a client that opens streams to
// take memory, and one that writes the most costly objects it can. With -soak, they are
// served nearly as soon as without these.
func TestGreedyNeighbours(t *testing.T) {
	outside.Slow(t)
	// The clients of this process are not to wait for each other: while all processors
	// of a program are busy, its runtime looks for answers only every 10 ms.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	length := *soak
	if length == 0 {
		length = 3 * time.Second
	}
	p := startOn(t, "--data-dir", filepath.Join(t.TempDir(), "data"))
	ops := p.honestOperations(t)
	quiet := measureFor(t.Context(), length, ops)
	_, before := p.Memory()

	ctx, stop := context.WithCancel(t.Context())
	var neighbours errgroup.Group
	streams, objects := newGreedyStreams(t), newGreedyObjects()
	neighbours.Go(func() error { return streams.run(ctx, p) })
	neighbours.Go(func() error { return objects.run(ctx, p) })
	loud := measureFor(t.Context(), length, ops)
	stop()
	if err := neighbours.Wait(); err != nil {
		t.Error(err)
	}
	_, most := p.Memory()
	t.Logf("%s\nthe greedy clients: %s; %s\nthe process had %d MiB at most without them, and %d MiB beside them%s",
		report(quiet, loud), streams, objects, before>>20, most>>20, load1())
	t.Logf("metrics: %s", p.metrics(t, "pilot_stream_connections_evicted_total"))
	judgeService(t, quiet, loud)
	if streams.opened.Load() == 0 || objects.accepted.Load() == 0 {
		t.Error("the greedy clients got nowhere: nothing was measured beside them")
	}
	if most == 0 {
		outside.Missing(t, "the memory of a process: /proc")
	}
	if most > mostSoakMemory<<20 {
		t.Errorf("the process had %d MiB, at most %d are allowed", most>>20, mostSoakMemory)
	}
	if *soak > 0 {
		judgeTime(t, quiet, loud)
	}
}

func judgeService(t *testing.T, phases ...[]measured) {
	t.Helper()
	for i, phase := range phases {
		for _, m := range phase {
			if len(m.failed) > 0 || len(m.took) == 0 {
				t.Errorf("phase %d: of %d honest requests of the kind %q, %d failed, the first with: %v", i+1, len(m.took)+len(m.failed), m.name, len(m.failed), slices.Concat(m.failed, []error{nil})[0])
			}
		}
	}
}

func judgeTime(t *testing.T, quiet, loud []measured) {
	t.Helper()
	for i, m := range loud {
		if q, l := quiet[i].quantile(99), m.quantile(99); l > mostRatio*q {
			t.Errorf("%s: the 99th percentile is %v beside greedy clients and %v without them: at most %d times as much is allowed", m.name, l, q, mostRatio)
		}
	}
}

// report is a table of what requests took.
func report(quiet, loud []measured) string {
	var out bytes.Buffer
	fmt.Fprintln(&out, "Each honest request begins at its time, whether or not those before it were answered; a quantile is over all requests of its kind.")
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "requests\twithout: number\tp50\tp99\tbeside: number\tp50\tp99\tp50 ratio\tp99 ratio\t")
	for i, q := range quiet {
		l := loud[i]
		ratio := func(percent int) float64 { return float64(l.quantile(percent)) / float64(max(1, q.quantile(percent))) }
		fmt.Fprintf(w, "%s\t%d\t%v\t%v\t%d\t%v\t%v\t%.1f\t%.1f\t\n", q.name,
			len(q.took), q.quantile(50), q.quantile(99), len(l.took), l.quantile(50), l.quantile(99), ratio(50), ratio(99))
	}
	w.Flush()
	return out.String()
}

// load1 is what the machine has to do beside this test, where it says so.
func load1() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return "; the load average is " + strings.Join(strings.Fields(string(text))[:3], " ")
}
