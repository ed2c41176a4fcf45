package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilot-api/pilot-api/internal/consistency/programmed"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/schema"
)

// proxy is a simulated Envoy. It connects to one server after the other, takes what it is sent
// after a while or refuses some of it, and leaves in all ways in which proxies leave. It
// records what it has before it acks it.
type proxy struct {
	programmed.Proxy
	random  *rand.Rand
	servers []*testbed.Server
	told    *told
	pace    float64
	delta   bool
	// calm proxies stay, answer at once and begin no refusals.
	calm *atomic.Bool

	has     configuration
	refused map[mark]bool
	// refuses is the object that the proxy refuses until a time: each write that it has not
	// taken yet.
	refuses schema.Key
	until   time.Duration
	named   bool // whether its refusals name the resource

	links     []*testbed.Link // that are silent
	malformed []error         // responses that no server should send

	mu    sync.Mutex
	ended bool // the present stream; nothing is acked after its end
}

func newProxy(n int, random *rand.Rand, servers []*testbed.Server, t *told, pace float64, calm *atomic.Bool) *proxy {
	namespace := namespaces[n%len(namespaces)]
	p := &proxy{random: random, servers: servers, told: t, pace: pace, delta: n/len(namespaces)%2 == 0, calm: calm}
	p.Name = fmt.Sprintf("sidecar~10.201.0.%d~proxy-%d.%s~%s.svc.cluster.local", 1+n, n, namespace, namespace)
	p.Namespace, p.Had = namespace, map[schema.Key][]programmed.Had{}
	p.has, p.refused = newConfiguration(), map[mark]bool{}
	return p
}

// upTo draws a time, mostly a short one.
func (p *proxy) upTo(most time.Duration) time.Duration {
	share := p.random.Float64()
	return time.Duration(p.pace * share * share * float64(most))
}

// run connects until ctx ends.
func (p *proxy) run(ctx context.Context) {
	defer p.breakSilent()
	for ctx.Err() == nil {
		p.connect(ctx, p.random.IntN(len(p.servers)))
		if p.calm.Load() {
			sleep(ctx, 100*time.Millisecond)
			continue
		}
		sleep(ctx, p.upTo(15*time.Second))
		if p.last().End == programmed.Closed && p.random.IntN(3) == 0 {
			p.beginAnew()
		}
	}
}

func (p *proxy) breakSilent() {
	for _, l := range p.links {
		l.Close()
	}
	p.links = nil
}

// last returns the last stream.
func (p *proxy) last() *programmed.Stream { return &p.Streams[len(p.Streams)-1] }

// beginAnew forgets everything, as a restarted Envoy does.
func (p *proxy) beginAnew() {
	p.has = newConfiguration()
	for key, had := range p.Had {
		if had[len(had)-1].Number != 0 {
			p.Had[key] = append(had, programmed.Had{At: p.told.now(), Anew: true})
		}
	}
}

// connect is one stream. It returns when the stream has ended.
func (p *proxy) connect(ctx context.Context, server int) {
	p.mu.Lock()
	p.ended = false
	p.Streams = append(p.Streams, programmed.Stream{Server: server, Begin: p.told.now(), End: programmed.Open})
	p.mu.Unlock()
	link, err := testbed.NewLink(p.servers[server].XDS, nil)
	if err != nil {
		p.end(programmed.Closed, err)
		return
	}
	conn, err := grpc.NewClient(link.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		p.end(programmed.Closed, err)
		link.Close()
		return
	}
	streaming, cancel := context.WithCancel(context.Background())
	leave := func(how programmed.StreamEnd) {
		if p.end(how, nil) && how == programmed.Silent {
			link.Set(testbed.Silent)
		}
		cancel()
	}
	defer context.AfterFunc(ctx, func() { leave(programmed.Closed) })()
	if !p.calm.Load() {
		defer p.leaveLater(leave)()
	}
	p.stream(streaming, conn)
	cancel()
	conn.Close()
	if p.last().End == programmed.Silent {
		p.links = append(p.links, link)
		return
	}
	link.Close()
}

// leaveLater ends the stream after a while, unless its server does so before.
func (p *proxy) leaveLater(leave func(programmed.StreamEnd)) (stop func() bool) {
	how, after := programmed.Closed, p.upTo(60*time.Second)
	switch n := p.random.IntN(3); n {
	case 0:
		how, after = programmed.Silent, after+time.Duration(p.pace*float64(10*time.Second))
	case 1:
		after *= 4
	}
	return time.AfterFunc(after, func() {
		if !p.calm.Load() {
			leave(how)
		}
	}).Stop
}

// end records the end of the stream, once.
func (p *proxy) end(how programmed.StreamEnd, why error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.ended = true
	p.last().End, p.last().Why, p.last().To = how, why, p.told.now()
	return true
}

// stream talks with a server until one of them ends the stream.
func (p *proxy) stream(ctx context.Context, conn *grpc.ClientConn) {
	open := openWorld
	if p.delta {
		open = openDelta
	}
	s, err := open(ctx, conn, &corev3.Node{Id: p.Name}, p.has)
	if err != nil {
		p.end(programmed.Broken, err)
		return
	}
	for _, t := range types {
		if err := s.begin(t); err != nil {
			break // The reader knows why.
		}
	}
	responses := make(chan *adsResponse, 64)
	ended := make(chan struct{})
	defer func() { <-ended }()
	over, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(ended)
		defer stop()
		for {
			r, err := s.receive()
			if err != nil {
				p.end(programmed.Broken, err)
				if errors.As(err, &malformedError{}) {
					p.malformed = append(p.malformed, err)
				}
				return
			}
			select {
			case responses <- r:
			case <-ctx.Done():
			}
		}
	}()
	for {
		select {
		case <-over.Done():
			return
		case r := <-responses:
			p.arrived()
			if !p.calm.Load() && p.random.IntN(8) == 0 {
				sleep(over, p.upTo(2*time.Second))
			}
			// An error ends the reader too.
			_ = p.take(s, r)
		}
	}
}

// arrived records that the server knows of the stream. A calm proxy then breaks the silent
// ones, so that nobody waits for them.
func (p *proxy) arrived() {
	if p.calm.Load() {
		p.breakSilent()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended && p.last().From == 0 {
		p.last().From = p.told.now()
	}
}

// take accepts a response or refuses it.
func (p *proxy) take(s adsStream, r *adsResponse) error {
	if words := p.refusal(r); words != "" {
		return s.answer(r, words)
	}
	p.apply(r)
	if to, added, gone := p.has.refer(r.typeURL); len(added)+len(gone) > 0 {
		if err := s.refer(to, added, gone); err != nil {
			return err
		}
	}
	if !p.note() {
		return nil
	}
	return s.answer(r, "")
}

// apply makes a response what the proxy has.
func (p *proxy) apply(r *adsResponse) {
	t := p.has[r.typeURL]
	if _, named := isNamed(r.typeURL); !named && !p.delta {
		t.resources = map[string]*held{} // The response has all.
	}
	for name, one := range r.resources {
		if _, named := isNamed(r.typeURL); !named || t.wanted[name] {
			t.resources[name] = one
		}
	}
	for _, name := range r.removed {
		delete(t.resources, name)
	}
	t.version = r.version
}

// note records what the proxy has. It returns false if the stream has ended: then nobody learns
// of it before the next stream, which begins with it.
func (p *proxy) note() bool {
	now := p.has.marks()
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.told.now()
	for key := range p.Had {
		if _, has := now[key]; !has {
			now[key] = 0
		}
	}
	for key, number := range now {
		if had := p.Had[key]; len(had) == 0 || had[len(had)-1].Number != number {
			p.Had[key] = append(had, programmed.Had{At: at, Number: number})
		}
	}
	return !p.ended
}

// refusal returns why the proxy refuses a response, or "". Content that it has refused once it
// refuses again, whoever sends it.
func (p *proxy) refusal(r *adsResponse) string {
	now := p.has.marks()
	var names []string
	for name, one := range r.resources {
		for _, m := range one.marks {
			if now[m.Key] == m.number {
				continue
			}
			if p.beginsToRefuse(m) {
				p.refused[m] = true
			}
			if p.refused[m] {
				names = append(names, name)
				p.Refused = append(p.Refused, programmed.Refusal{Key: m.Key, Number: m.number, At: p.told.now()})
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case !p.named || r.typeURL == routeType:
		return "this is refused"
	case r.typeURL == clusterType:
		return "Error adding/updating cluster(s) " + strings.Join(names, ", ") + ": this is refused"
	}
	return "Error adding/updating listener(s) " + strings.Join(names, ", ") + ": this is refused"
}

// beginsToRefuse reports whether the proxy refuses a write that it has not seen yet. Endpoints
// are never refused.
func (p *proxy) beginsToRefuse(m mark) bool {
	if p.calm.Load() || m.Kind == "ServiceEntry" {
		return false
	}
	now := p.told.now()
	if now > p.until && p.random.IntN(150) == 0 {
		p.refuses, p.until, p.named = m.Key, now+p.upTo(8*time.Second), p.random.IntN(2) == 0
	}
	return now <= p.until && m.Key == p.refuses
}

// endings counts the streams by how they ended.
func endings(all []*proxy) map[programmed.StreamEnd]int {
	n := map[programmed.StreamEnd]int{}
	for _, p := range all {
		for _, s := range p.Streams {
			if s.From != 0 {
				n[s.End]++
			}
		}
	}
	return n
}
