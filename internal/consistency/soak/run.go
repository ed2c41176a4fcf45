package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// kept is the minimum number of changes that a watcher may go back.
const kept = 40_000

// settings of a run. Seed determines what is done when, but not the results.
type settings struct {
	Program  string // pilot-api.
	Dir      string // Of data, logs and the history.
	Seed     uint64
	Duration time.Duration
	Least    int     // Minimum number of operations of a run, however long it takes.
	Calm     bool    // Without faults.
	Pace     float64 // How long faults last and how far apart they are; 1 is seconds.
	Clients  int
	Watchers int // Of each sort.
	Rounds   int // Of storms; 0 is their default.
	Out      io.Writer
}

// random returns an independent random source for a purpose.
func (s settings) random(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, purpose)) }

// report is the result of a run.
type report struct {
	operations, unknown, faults, watches int
	events                               int64
	revision                             int64
	violations                           []consistency.Violation
	history                              *consistency.History
	saved                                string // The file with the history, if there were violations.
	also                                 string // What else was done.
}

func (r report) String() string {
	text := fmt.Sprintf("%d operations (%d of unknown outcome), revision %d, %d faults, %d watchers, %d events, %d violations %v",
		r.operations, r.unknown, r.revision, r.faults, r.watches, r.events, len(r.violations), consistency.Rules(r.violations))
	if r.also != "" {
		text += "\n  " + r.also
	}
	for i, v := range r.violations {
		if i == 5 {
			text += "\n  …"
			break
		}
		text += "\n  " + v.String()
	}
	if r.saved != "" {
		text += "\n  the history is in " + r.saved
	}
	return text
}

// run makes one history and checks it.
func run(ctx context.Context, s settings, open func(ctx context.Context, dir, program string) (*world, error)) (report, error) {
	w, err := open(ctx, s.Dir, s.Program)
	if w != nil {
		defer w.close()
	}
	if err != nil {
		return report{}, err
	}
	r := &runner{settings: s, world: w, record: newRecord()}
	return r.run(ctx)
}

type runner struct {
	settings
	world  *world
	record *record

	watchers    []*watcher
	joined      []*joined
	informers   []*informer
	violations  []consistency.Violation
	compactions []consistency.Compaction // Only havoc adds to them.
}

func (r *runner) run(ctx context.Context) (report, error) {
	r.world.compacted = func(revision int64) {
		r.compactions = append(r.compactions, consistency.Compaction{At: r.record.now(), Revision: revision})
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var watchers sync.WaitGroup
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	if err := r.startWatchers(watching, &watchers, working.Done()); err != nil {
		return report{}, err
	}
	faults, err := r.disturb(working, stopWorking)
	if err != nil {
		return report{}, err
	}
	ends := r.settle(ctx)
	stopWatching()
	watchers.Wait()
	r.world.stop()
	for _, err := range r.world.complaints {
		r.violate("server that did not end", "%v", err)
	}
	return r.judge(ctx, faults, ends)
}

func (r *runner) violate(rule, format string, args ...any) {
	r.violations = append(r.violations, consistency.Violation{Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// startWatchers starts some watchers of each sort: steady, restless and slow ones that
// stay, and ones that hop from revision to revision. Among both are ones that resume as
// Kubernetes clients and as browsers do. It also starts ones over all kinds, and a cache
// over each server.
func (r *runner) startWatchers(ctx context.Context, group *sync.WaitGroup, hurry <-chan struct{}) error {
	readers, err := clients(r.world.urls())
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	httpClient := &http.Client{Transport: transport}
	context.AfterFunc(ctx, transport.CloseIdleConnections)
	purpose := uint64(1000)
	for n := range r.Watchers {
		for i, scope := range scopes() {
			purpose++
			w := r.watcher(fmt.Sprintf("w%d-%d", n, i), scope, purpose, httpClient)
			w.plain, w.browser = n%3 == 1, n%3 == 2
			w.restless = (n+i)%3 == 1
			if (n+i)%3 == 2 {
				w.slow, w.hurry = 20*time.Millisecond, hurry
			}
			r.watchers = append(r.watchers, w)
			group.Go(func() { w.run(ctx, 1) })
			h := r.watcher(fmt.Sprintf("h%d-%d", n, i), scope, purpose+500, httpClient)
			h.plain, h.browser = n%4 == 0, n%4 == 1
			group.Go(func() { h.hop(ctx) })
		}
		j := &joined{name: fmt.Sprintf("j%d", n), random: r.random(purpose + 2000), servers: readers, record: r.record}
		r.joined = append(r.joined, j)
		group.Go(func() { j.run(ctx, 1) })
	}
	for i, reader := range readers {
		in := newInformer(fmt.Sprintf("cache%d", i), reader, r.record)
		r.informers = append(r.informers, in)
		group.Go(func() { in.run(ctx) })
	}
	return nil
}

func (r *runner) watcher(name string, scope store.Scope, purpose uint64, c *http.Client) *watcher {
	return &watcher{
		name: name, scope: scope, random: r.random(purpose), pace: r.Pace,
		http: c, servers: r.world.urls(), record: r.record,
	}
}

// scopes returns the scopes of watchers.
func scopes() []store.Scope {
	var all []store.Scope
	for _, name := range kinds {
		kind, _ := schema.KindByName(name)
		all = append(all, store.Scope{Kind: kind}, store.Scope{Kind: kind, Namespace: namespaces[0]})
	}
	return all
}

// disturb runs clients and faults for the time of the run, and then stops the clients.
func (r *runner) disturb(working context.Context, stop func()) (faults int, err error) {
	var group sync.WaitGroup
	for i := range r.Clients {
		c := newRequester(fmt.Sprintf("c%d", i), r.random(uint64(i)), r.world.urls(), r.record)
		group.Go(func() { c.run(working) })
	}
	group.Go(func() { r.progress(working) })
	group.Go(func() { r.last(working); stop() })
	log, err := os.Create(filepath.Join(r.Dir, "faults.log"))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	if !r.Calm {
		faults, err = havoc(working, r.random(999), r.Pace, &stamped{r.record.now, log}, r.world.faults)
	}
	group.Wait()
	return faults, err
}

// last waits until the run is long enough.
func (r *runner) last(ctx context.Context) {
	sleep(ctx, r.Duration)
	for ctx.Err() == nil && r.record.size() < r.Least {
		sleep(ctx, 100*time.Millisecond)
	}
}

// stamped writes the time of the history before each line.
type stamped struct {
	now func() time.Duration
	to  io.Writer
}

func (s *stamped) Write(line []byte) (int, error) {
	return fmt.Fprintf(s.to, "%.3fs %s", s.now().Seconds(), line)
}

func (r *runner) progress(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			operations, unknown, watches := r.record.counts()
			fmt.Fprintf(r.Out, "  %3.0fs %6d operations, %4d unknown, revision %6d, %4d watches, %7d events\n",
				r.record.now().Seconds(), operations, unknown, r.record.known.Load(), watches, r.record.events.Load())
		}
	}
}

// settle requires that everything works again without faults: each server is ready and
// accepts writes, and each watcher receives them. It returns the last revision of each
// kind and namespace.
func (r *runner) settle(ctx context.Context) map[store.Scope]int64 {
	if err := r.world.ready(ctx, comeBackLimit); err != nil {
		r.violate("server that did not come back", "%v", err)
	}
	limited, cancel := context.WithTimeout(ctx, comeBackLimit)
	defer cancel()
	ends := map[store.Scope]int64{}
	for i := range r.world.servers {
		c := newRequester(fmt.Sprintf("end%d", i), r.random(uint64(900+i)), r.world.urls(), r.record)
		for _, kind := range kinds {
			for _, namespace := range namespaces {
				key := schema.Key{Kind: kind, Namespace: namespace}
				if revision := c.insist(limited, key, i); revision != 0 {
					scope := scopeOf(key)
					ends[scope] = max(ends[scope], revision)
				}
			}
		}
	}
	r.await(ctx, ends)
	return ends
}

// insist creates an object and reads it, and repeats until both succeed.
func (c *requester) insist(ctx context.Context, key schema.Key, server int) (revision int64) {
	for ctx.Err() == nil {
		c.count++
		key.Name = fmt.Sprintf("%s-%d", c.name, c.count)
		op := c.one(ctx, consistency.Operation{Verb: consistency.Create, Key: key, Value: key.String()}, server)
		if op.Outcome == consistency.OK {
			list := c.one(ctx, consistency.Operation{Verb: consistency.List, Scope: store.Scope{Kind: scopeOf(key).Kind}}, server)
			if list.Outcome == consistency.OK {
				return op.Revision
			}
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return 0
}

// await waits until all watchers have reached the end. The checker finds those that do
// not.
func (r *runner) await(ctx context.Context, ends map[store.Scope]int64) {
	ctx, cancel := context.WithTimeout(ctx, comeBackLimit)
	defer cancel()
	all := endOf(store.Scope{}, ends)
	arrived := func() bool {
		for _, w := range r.watchers {
			if w.seen.Load() < endOf(w.scope, ends) {
				return false
			}
		}
		for _, j := range r.joined {
			if j.seen.Load() < all {
				return false
			}
		}
		for _, i := range r.informers {
			if i.seen.Load() < all {
				return false
			}
		}
		return true
	}
	for ctx.Err() == nil && !arrived() {
		sleep(ctx, 50*time.Millisecond)
	}
	for i, in := range r.informers {
		if seen := in.seen.Load(); seen < all {
			r.violate("cache that did not come back", "cache %d is at %d, want %d", i, seen, all)
		}
	}
}

// endOf returns the last revision that a watcher of a scope must receive.
func endOf(scope store.Scope, ends map[store.Scope]int64) (end int64) {
	for s, revision := range ends {
		if (scope.Kind == nil || scope.Kind == s.Kind) && (scope.Namespace == "" || scope.Namespace == s.Namespace) {
			end = max(end, revision)
		}
	}
	return end
}

func (r *runner) judge(ctx context.Context, faults int, ends map[store.Scope]int64) (report, error) {
	changes, err := r.world.changes(ctx)
	if err != nil {
		return report{}, err
	}
	for _, w := range r.watchers {
		w.watch.Until = endOf(w.scope, ends)
	}
	for _, j := range r.joined {
		j.watch.Until = endOf(store.Scope{}, ends)
	}
	if len(ends) < len(kinds)*len(namespaces) {
		r.violate("server that did not come back", "not every write and list was answered within %s of the last fault", comeBackLimit)
	}
	h := &consistency.History{Operations: r.record.operations, Watches: r.record.watches, Changes: changes, Kept: kept, Compactions: r.compactions}
	operations, unknown, watches := r.record.counts()
	result := report{
		operations: operations, unknown: unknown, faults: faults, watches: watches, events: r.record.events.Load(),
		revision: r.record.known.Load(), violations: append(r.violations, h.Check()...), history: h,
	}
	if len(result.violations) > 0 {
		result.saved = filepath.Join(r.Dir, "history.txt")
		err = save(result.saved, h, result.violations)
	}
	return result, err
}
