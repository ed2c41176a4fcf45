package server

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// membersAge is how old the register of replicas may be for who does not ask for what is
// so now. After membersLost it is not known any more, and who has failed to answer is
// waited for again.
const (
	membersAge  = time.Second
	membersLost = 5 * time.Second
)

// peerBoard has what the other replicas say of their proxies. It asks when it is
// looked at, and waits for nobody who has just failed to answer.
type peerBoard struct {
	peers Peers
	log   *slog.Logger
	ask   func(ctx context.Context, of Replica, age time.Duration, etag string) (*standings, string, error)

	mu       sync.Mutex
	register inquiry
	known    map[string]*peer
}

// peer is another replica.
type peer struct {
	inquiry
	Replica

	answered time.Time
	etag     string
	revision int64
	awaiting bool
	of       map[diag.Ref]standing
}

// inquiry is what somebody is asked again and again, one question at a time.
type inquiry struct {
	asOf     time.Time // what was said last is not older than this
	underway *question
	failed   time.Time // the last one, zero after an answer
}

type question struct {
	asOf time.Time
	done chan struct{}
}

// peerView is what the others have said, at one moment.
type peerView struct {
	told    []peer
	silent  []string // what is missing, as people read it
	awaited []string // and whose proxies may be on their way back
}

func newPeerBoard(peers Peers, log *slog.Logger) *peerBoard {
	return &peerBoard{peers: peers, log: log, ask: standingsAt, known: map[string]*peer{}}
}

// look asks the others how it was after a time. Who wants to know what is so now waits
// for that and is told who has not said it; who does not can do with what was said a
// moment ago.
func (b *peerBoard) look(after time.Time) peerView {
	if b == nil || b.peers == nil {
		return peerView{}
	}
	now := time.Now()
	patience, listed, said := statusAge, now.Add(-membersAge), time.Time{}
	if now.Sub(after) < statusAge {
		patience, listed, said = peerTimeout, after, after
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b.await(ctx, &b.register, listed, now, b.readMembers)
	var asked sync.WaitGroup
	for _, p := range b.members() {
		asked.Go(func() {
			b.await(ctx, &p.inquiry, after, after, func(ctx context.Context) error { return b.askOne(ctx, p, time.Since(after)) })
		})
	}
	asked.Wait()
	return b.view(said)
}

// await has somebody asked, unless what was said after a time is known or on its way,
// and waits for that. A new question is for what is so as of another time, not before
// that one.
func (b *peerBoard) await(ctx context.Context, of *inquiry, after, asOf time.Time, ask func(context.Context) error) {
	for {
		b.mu.Lock()
		if !of.asOf.Before(after) {
			b.mu.Unlock()
			return
		}
		q := of.underway
		if q == nil {
			q = &question{asOf: asOf, done: make(chan struct{})}
			of.underway = q
			go b.put(of, q, ask)
		}
		hopeless := time.Since(of.failed) < membersLost
		b.mu.Unlock()
		if hopeless {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-q.done:
		}
		if !q.asOf.Before(after) {
			return
		}
	}
}

// put puts a question, which outlives who could not wait for the answer.
func (b *peerBoard) put(of *inquiry, q *question, ask func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), peerTimeout)
	defer cancel()
	err := ask(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	defer close(q.done)
	of.underway = nil
	if err != nil {
		of.failed = time.Now()
		return
	}
	of.asOf, of.failed = q.asOf, time.Time{}
}

func (b *peerBoard) readMembers(ctx context.Context) error {
	others, err := b.peers.Others(ctx)
	if err != nil {
		b.log.Warn("the other replicas are not known", "error", err)
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	known := map[string]*peer{}
	for _, other := range others {
		p := b.known[other.Name]
		if p == nil || p.URL != other.URL {
			p = &peer{}
		}
		p.Replica, known[other.Name] = other, p
	}
	b.known = known
	return nil
}

func (b *peerBoard) members() []*peer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.known))
}

func (b *peerBoard) askOne(ctx context.Context, p *peer, age time.Duration) error {
	b.mu.Lock()
	etag, of := p.etag, p.Replica
	b.mu.Unlock()
	said, newer, err := b.ask(ctx, of, age, etag)
	if err != nil {
		b.log.Debug("a replica does not tell how objects stand", "replica", of.Name, "url", of.URL, "error", err)
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p.answered = time.Now()
	if said == nil {
		return nil
	}
	p.etag, p.revision, p.awaiting, p.of = newer, said.Revision, said.Awaiting, make(map[diag.Ref]standing, len(said.Objects))
	for _, s := range said.Objects {
		p.of[s.Object] = s
	}
	return nil
}

// view is what is known now. Silent is who has said nothing for a while, or nothing
// that was so after a time.
func (b *peerBoard) view(after time.Time) peerView {
	b.mu.Lock()
	defer b.mu.Unlock()
	var v peerView
	if b.register.asOf.Before(after) || time.Since(b.register.asOf) > membersLost {
		v.silent = append(v.silent, "the other replicas are not known at present")
	}
	if since, is := b.peers.CutOff(); is {
		v.silent = append(v.silent, "this replica is cut off from the store since "+since.Format(time.TimeOnly))
	}
	for _, name := range slices.Sorted(maps.Keys(b.known)) {
		p := b.known[name]
		if p.asOf.Before(after) || time.Since(p.answered) > peerTimeout {
			v.silent = append(v.silent, p.silence()+", its proxies are missing")
			continue
		}
		v.told = append(v.told, *p)
		if p.awaiting {
			v.awaited = append(v.awaited, "replica "+p.Name+" was started a moment ago")
		}
	}
	return v
}

// standingsAt asks a replica for those of at most an age; nil when it has nothing new.
func standingsAt(ctx context.Context, of Replica, age time.Duration, etag string) (*standings, string, error) {
	var said standings
	newer, err := askPeer(ctx, of, []string{standingsPath}, url.Values{"maxAge": {max(age, 0).String()}}, etag, &said)
	if err != nil || newer == etag {
		return nil, etag, err
	}
	return &said, newer, nil
}

// lag is what is known of one that has not published a revision.
func (p peer) lag() string {
	text := fmt.Sprintf("replica %s is at revision %d", p.Name, p.revision)
	if !p.Missing.IsZero() {
		text += ", and cut off from the store since " + p.Missing.Format(time.TimeOnly)
	}
	return text
}

// fleetStanding is how an object stands with the proxies of all replicas.
type fleetStanding struct {
	discovery.ObjectStatus
	behind  []string // replicas that have not published it yet
	silent  []string // what is missing
	awaited []string // replicas whose proxies may be on their way back
}

func (s fleetStanding) programmed() schema.Programmed {
	return schema.Programmed{Proxies: s.Proxies, Running: s.Running}
}

// isPlain: there is nothing to tell of but how many proxies there are.
func (s fleetStanding) isPlain() bool {
	return len(s.Problems)+len(s.Refusals)+len(s.behind)+len(s.silent)+len(s.awaited) == 0
}

// add puts what the others say of an object of a revision to what is known here.
func (v peerView) add(own discovery.ObjectStatus, ref diag.Ref, revision int64) fleetStanding {
	out := fleetStanding{ObjectStatus: own, silent: v.silent, awaited: v.awaited}
	for _, p := range v.told {
		s := p.of[ref]
		out.Proxies += s.Proxies
		if p.revision < revision {
			out.behind = append(out.behind, p.lag())
			continue
		}
		out.Running += s.Running
		out.Refusals = slices.Concat(out.Refusals, s.Refusals)
	}
	return out
}
