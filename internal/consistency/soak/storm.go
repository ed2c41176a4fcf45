package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
)

// storm kills and restarts a server repeatedly. Many watchers reconnect each time, while
// writers and readers continue.
type storm struct {
	rounds   int
	watchers int
	behind   int // How many changes they missed.
	unread   int // Additional watchers that read nothing and hang up.
	size     int // Of the objects, in bytes.

	stall     time.Duration // The longest time without a read, and without a write, once the server is ready.
	memory    int64         // The most that the server may hold.
	roundTime time.Duration // For the watchers to reconnect.
}

// resumes has many watchers with much to catch up on.
var resumes = storm{
	rounds: 20, watchers: 300, behind: 10_000, size: 10,
	stall: 10 * time.Second, memory: 1 << 30, roundTime: 4 * time.Minute,
}

// deep has watchers whose revisions are no longer in any memory.
var deep = storm{
	rounds: 3, watchers: 30, behind: 40_000, size: 10,
	stall: 10 * time.Second, memory: 1 << 30, roundTime: 4 * time.Minute,
}

// reconnects has many concurrent watchers with little to catch up on, and some that never
// read.
var reconnects = storm{
	rounds: 20, watchers: 200, behind: 50, unread: 100, size: 8 << 10,
	stall: time.Second, memory: 1 << 30, roundTime: time.Minute,
}

func (st storm) run(ctx context.Context, s settings) (report, error) {
	w, err := openEmbedded(ctx, s.Dir, s.Program)
	if w != nil {
		defer w.close()
	}
	if err != nil {
		return report{}, err
	}
	r := &stormRun{storm: st, settings: s, world: w, traffic: newTraffic(w.servers[0].URL, 100, st.size)}
	r.traffic.measure()
	if err := r.traffic.fill(ctx, st.behind+r.traffic.objects); err != nil {
		return report{}, err
	}
	flowing, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	r.traffic.flow(flowing, &group, s.random(1))
	for i := range st.rounds {
		if err := r.round(ctx, i); err != nil {
			return r.report, err
		}
		if len(r.report.violations) > 0 {
			w.servers[0].Stacks() // They may show the reason.
			break
		}
	}
	stop()
	group.Wait()
	r.report.operations, r.report.revision = len(r.traffic.acknowledged), r.traffic.revision()
	w.stop()
	for _, err := range w.complaints {
		r.violate("server that did not end", "%v", err)
	}
	return r.report, nil
}

type stormRun struct {
	storm
	settings
	world   *world
	traffic *traffic
	report  report
}

func (r *stormRun) violate(rule, format string, args ...any) {
	r.report.violations = append(r.report.violations, consistency.Violation{Rule: rule, Text: fmt.Sprintf(format, args...)})
}

func (r *stormRun) round(ctx context.Context, n int) error {
	server := r.world.servers[0]
	server.Kill()
	r.report.faults++
	killedAt := r.traffic.revision()
	if err := server.Start(); err != nil {
		return err
	}
	if err := r.world.ready(ctx, startLimit); err != nil {
		return err
	}
	r.traffic.measure()
	begin := time.Now()
	all, stop := r.resume(ctx, killedAt)
	reads, writes := r.traffic.measured()
	_, most := server.Memory()

	r.report.watches += len(all)
	events := 0
	for _, l := range all {
		events += len(l.told)
	}
	r.report.events += int64(events)
	found := compare(all, r.since(all[0].after), stop)
	r.report.violations = append(r.report.violations, found...)
	r.limit("reads", reads.longest)
	r.limit("writes", writes.longest)
	if most > r.memory {
		r.violate("memory", "the server held %d MiB", most>>20)
	}
	fmt.Fprintf(r.Out, "  round %2d: %d watchers, %d events in %s; %d reads (longest wait %s), %d writes (%s), %d MiB, %d violations\n",
		n+1, len(all), events, time.Since(begin).Round(time.Millisecond), reads.done, reads.longest.Round(time.Millisecond),
		writes.done, writes.longest.Round(time.Millisecond), most>>20, len(r.report.violations))
	return ctx.Err()
}

func (r *stormRun) limit(what string, longest time.Duration) {
	if longest > r.stall {
		r.violate("stall", "%s stood still for %s, %s are allowed", what, longest.Round(time.Millisecond), r.stall)
	}
}

// since returns the acknowledged changes after a revision.
func (r *stormRun) since(after int64) (revisions []int64) {
	r.traffic.mu.Lock()
	defer r.traffic.mu.Unlock()
	for _, revision := range r.traffic.acknowledged {
		if revision > after {
			revisions = append(revisions, revision)
		}
	}
	return revisions
}

// resume reconnects all watchers at once. It returns when they have received everything
// that they missed and everything written meanwhile, up to stop.
func (r *stormRun) resume(ctx context.Context, killedAt int64) (all []*lean, end int64) {
	ctx, cancel := context.WithTimeout(ctx, r.roundTime)
	defer cancel()
	after := r.before(killedAt)
	transport := &http.Transport{DisableKeepAlives: true}
	httpClient := &http.Client{Transport: transport}
	var stop atomic.Int64
	var group sync.WaitGroup
	for i := range r.watchers {
		l := &lean{name: fmt.Sprintf("w%d", i), url: r.traffic.collection(), http: httpClient, after: after}
		all = append(all, l)
		group.Go(func() { l.follow(ctx, &stop) })
	}
	for i := range r.unread {
		group.Go(func() { hangUp(ctx, httpClient, r.traffic.collection(), after, time.Duration(i)*10*time.Millisecond) })
	}
	// The watchers must also receive concurrent writes.
	for ctx.Err() == nil && r.slowest(all) < killedAt {
		sleep(ctx, 20*time.Millisecond)
	}
	now := r.traffic.revision()
	for ctx.Err() == nil && r.traffic.revision() < now+10 {
		sleep(ctx, 20*time.Millisecond)
	}
	end = r.traffic.revision()
	stop.Store(end)
	group.Wait()
	return all, end
}

// before returns the revision that the given number of changes comes after.
func (r *stormRun) before(revision int64) int64 {
	r.traffic.mu.Lock()
	defer r.traffic.mu.Unlock()
	sorted := slices.Sorted(slices.Values(r.traffic.acknowledged))
	past := upTo(sorted, revision)
	return past[max(0, len(past)-r.behind-1)]
}

func (r *stormRun) slowest(all []*lean) int64 {
	least := all[0].seen.Load()
	for _, l := range all {
		least = min(least, l.seen.Load())
	}
	return least
}

// hangUp opens a watch, reads nothing, and closes it after a while.
func hangUp(ctx context.Context, c *http.Client, url string, after int64, wait time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := watchFrom(ctx, c, url, after)
	if err != nil {
		return
	}
	sleep(ctx, wait)
	resp.Body.Close()
}
