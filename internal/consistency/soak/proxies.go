package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/internal/consistency/programmed"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/schema"
)

const (
	// fleet is how many proxies there are.
	fleet = 12
	// writers and readers are how many clients write objects and read statuses.
	writers, readers = 4, 4
)

// proxiesRun is a run with proxies: is what clients are told about them so?
type proxiesRun struct {
	settings
	world   *world
	told    *told
	proxies []*proxy
	calm    atomic.Bool

	violations []consistency.Violation
	faults     int
}

func runProxies(ctx context.Context, s settings) (report, error) {
	w, err := openReplicas(ctx, s.Dir, s.Program, "--status-revisions", "on")
	if w != nil {
		defer w.close()
	}
	if err != nil {
		return report{}, err
	}
	r := &proxiesRun{settings: s, world: w, told: newTold()}
	return r.run(ctx)
}

func (r *proxiesRun) run(ctx context.Context) (report, error) {
	connected, disconnect := context.WithCancel(ctx)
	defer disconnect()
	var proxies sync.WaitGroup
	for n := range fleet {
		p := newProxy(n, r.random(uint64(100+n)), r.world.servers, r.told, r.Pace, &r.calm)
		r.proxies = append(r.proxies, p)
		proxies.Go(func() { p.run(connected) })
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var clients sync.WaitGroup
	all, err := r.startClients(ctx, working, &clients)
	if err != nil {
		return report{}, err
	}
	err = r.disturb(working, stop)
	clients.Wait()
	if err == nil {
		r.settle(ctx, all)
	}
	disconnect()
	proxies.Wait()
	r.world.stop()
	for _, complaint := range r.world.complaints {
		r.violate("server that did not end", "%v", complaint)
	}
	if err != nil {
		return report{}, err
	}
	return r.judge()
}

func (r *proxiesRun) violate(rule, format string, args ...any) {
	r.violations = append(r.violations, consistency.Violation{Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// startClients writes all objects once, and starts writers and readers.
func (r *proxiesRun) startClients(ctx, working context.Context, group *sync.WaitGroup) ([]*writer, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	context.AfterFunc(ctx, client.CloseIdleConnections)
	objects, constant := markedObjects()
	var keys []schema.Key
	for _, o := range objects {
		keys = append(keys, o.Key)
	}
	all := sharedOut(objects, writers, func(i int) *writer {
		return &writer{random: r.random(uint64(200 + i)), http: client, servers: r.world.urls(), told: r.told}
	})
	for _, text := range constant {
		status, answer, err := all[0].exchange(ctx, http.MethodPost, path(scopeOf(schema.Key{Kind: "ServiceEntry", Namespace: namespaceOf(text)})), text)
		if err != nil || status != http.StatusCreated {
			return nil, fmt.Errorf("creating a service: %d %s %w", status, answer, err)
		}
	}
	for _, w := range all {
		for _, o := range w.objects {
			w.write(ctx, o, programmed.Write{})
		}
		group.Go(func() { w.run(working, r.Pace) })
	}
	for i := range readers {
		reader := &statusReader{random: r.random(uint64(300 + i)), http: client, servers: r.world.urls(), told: r.told, keys: keys}
		group.Go(func() { reader.run(working, r.Pace) })
	}
	for i, scope := range markedScopes() {
		watcher := &statusReader{random: r.random(uint64(400 + i)), http: client, servers: r.world.urls(), told: r.told}
		group.Go(func() { watcher.watch(working, scope, r.Pace) })
	}
	return all, nil
}

// namespaceOf returns the namespace of a manifest.
func namespaceOf(text []byte) string {
	_, rest, _ := strings.Cut(string(text), `"namespace":"`)
	namespace, _, _ := strings.Cut(rest, `"`)
	return namespace
}

// disturb makes faults for the time of the run, and then stops the clients.
func (r *proxiesRun) disturb(working context.Context, stop func()) (err error) {
	defer stop()
	timed, cancel := context.WithTimeout(working, r.Duration)
	defer cancel()
	go r.progress(timed)
	log, err := os.Create(filepath.Join(r.Dir, "faults.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	r.faults, err = havoc(timed, r.random(999), r.Pace, &stamped{r.told.now, log}, r.deaths)
	return err
}

// deaths returns one fault of each sort for a random server and member: deaths that are short,
// and ones that are longer than the others take the server for alive.
func (r *proxiesRun) deaths(random *rand.Rand) []fault {
	server, member := random.IntN(len(r.world.servers)), random.IntN(len(r.world.etcd.Members))
	s := r.world.servers[server].Process
	all := []fault{
		r.dies(server, kill(s), 2*time.Second), r.dies(server, kill(s), 14*time.Second), r.dies(server, kill(s), time.Second),
		r.dies(server, r.world.restart(s), time.Second), r.dies(server, r.world.restart(s), 14*time.Second),
		pauseOf(s, 4*time.Second), kill(r.world.etcd.Members[member].Process), r.world.breakLinks(),
		r.world.cutServer(server, testbed.Refusing), r.world.cutServer(server, testbed.Silent),
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// dies returns a fault that ends a server, with a record of that.
func (r *proxiesRun) dies(server int, how fault, most time.Duration) fault {
	return fault{how.name, func() func() error {
		back := r.told.death(server)
		mend := how.do()
		return func() error {
			defer back()
			return mend()
		}
	}, most}
}

func (r *proxiesRun) progress(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c := r.told.counts()
			fmt.Fprintf(r.Out, "  %3.0fs %5d writes, %6d Trues (%6d fresh), %5d proxies shown, %3d deaths\n",
				r.told.now().Seconds(), c.writes, c.trues, c.freshTrues, c.shown, c.deaths)
		}
	}
}

// settle requires that everything runs everywhere without faults: proxies that answer and
// refuse nothing new get one more write of each object, and soon all are programmed.
func (r *proxiesRun) settle(ctx context.Context, all []*writer) {
	r.calm.Store(true)
	if err := r.world.ready(ctx, comeBackLimit); err != nil {
		r.violate("server that did not come back", "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, comeBackLimit)
	defer cancel()
	for _, w := range all {
		for _, o := range w.objects {
			for ctx.Err() == nil && !w.write(ctx, o, programmed.Write{}) {
				sleep(ctx, 50*time.Millisecond)
			}
		}
	}
	reader := &statusReader{random: r.random(500), http: all[0].http, servers: all[0].servers, told: r.told}
	for _, w := range all {
		for _, o := range w.objects {
			if last := reader.wait(ctx, o.Key); last == nil || !last.True {
				r.violate("object that is not programmed in the end", "%s: %v", o.Key, last)
			}
		}
	}
}

func (r *proxiesRun) judge() (report, error) {
	refusals := 0
	for _, p := range r.proxies {
		r.told.history.Proxies = append(r.told.history.Proxies, &p.Proxy)
		refusals += len(p.Refused)
		for _, err := range p.malformed {
			r.violate("malformed response", "%s: %v", p.Name, err)
		}
	}
	ends, c := endings(r.proxies), r.told.counts()
	out := report{
		operations: c.writes, faults: r.faults, watches: len(markedScopes()), events: int64(c.trues),
		violations: append(r.violations, r.told.history.Check()...),
		also: fmt.Sprintf("%d Trues checked, %d of them fresh; %d proxies shown; %d refusals; streams: %d closed, %d silent, %d broken; %d deaths of servers",
			c.trues, c.freshTrues, c.shown, refusals, ends[programmed.Closed], ends[programmed.Silent], ends[programmed.Broken], c.deaths),
	}
	if len(out.violations) == 0 {
		return out, nil
	}
	out.saved = filepath.Join(r.Dir, "history.txt")
	return out, saveProgrammed(out.saved, &r.told.history, out.violations)
}
