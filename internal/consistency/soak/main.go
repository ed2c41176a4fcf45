// Command soak runs pilot-api with clients and watchers, makes the network and programs
// below them fail, and checks the answers. It exits with code 1 if the contract did not
// allow an answer.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

func main() {
	testbed.RunMember()
	var s settings
	flag.StringVar(&s.Program, "program", "bin/pilot-api", "the server")
	flag.StringVar(&s.Dir, "dir", "", "folder for data, logs and the history (default one in the folder for temporary files)")
	flag.Uint64Var(&s.Seed, "seed", uint64(time.Now().UnixNano()), "what is done when follows from it")
	flag.DurationVar(&s.Duration, "duration", 2*time.Minute, "how long external, embedded and proxies run")
	flag.IntVar(&s.Least, "operations", 20_000, "how many operations external and embedded have at least, however long it takes")
	flag.IntVar(&s.Clients, "clients", 12, "how many clients write and read")
	flag.IntVar(&s.Watchers, "watchers", 3, "how many watchers of each sort there are")
	flag.IntVar(&s.Rounds, "rounds", 0, "how often resumes, reconnects and deep kill the server (default 20, deep 3)")
	which := flag.String("case", "external,embedded,proxies,resumes,reconnects,deep", "what to run")
	flag.Parse()
	s.Out, s.Pace = os.Stdout, 1
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if !soak(ctx, s, strings.Split(*which, ",")) {
		os.Exit(1)
	}
}

func soak(ctx context.Context, s settings, names []string) (good bool) {
	if s.Dir == "" {
		dir, err := os.MkdirTemp("", "soak-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return false
		}
		s.Dir = dir
	}
	good = true
	for _, name := range names {
		one := s
		one.Dir = filepath.Join(s.Dir, name)
		fmt.Fprintf(s.Out, "%s: seed %d, %s, in %s\n", name, s.Seed, s.Duration, one.Dir)
		result, err := runCase(ctx, name, one)
		if err != nil {
			fmt.Fprintf(s.Out, "%s: %v\n", name, err)
			good = false
			continue
		}
		fmt.Fprintf(s.Out, "%s: %s\n", name, result)
		good = good && len(result.violations) == 0
	}
	return good
}

func runCase(ctx context.Context, name string, s settings) (report, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return report{}, err
	}
	switch name {
	case "external":
		return run(ctx, s, openExternal)
	case "embedded":
		return run(ctx, s, openEmbedded)
	case "proxies":
		return runProxies(ctx, s)
	case "resumes":
		return s.scaled(resumes).run(ctx, s)
	case "deep":
		return s.scaled(deep).run(ctx, s)
	case "reconnects":
		return s.scaled(reconnects).run(ctx, s)
	}
	return report{}, fmt.Errorf("there is no case %q", name)
}

// scaled returns a storm with the requested number of rounds.
func (s settings) scaled(st storm) storm {
	if s.Rounds > 0 {
		st.rounds = s.Rounds
	}
	return st
}
