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
)

// membersAge is how old the register of replicas may be, membersLost from when on it
// is not known any more.
const (
	membersAge  = time.Second
	membersLost = 5 * time.Second
)

// peerBoard has what the other replicas say of their proxies. It asks when it is
// looked at, and waits for nobody who did not answer the last time.
type peerBoard struct {
	peers Peers
	log   *slog.Logger

	mu      sync.Mutex
	known   map[string]*peer
	listed  time.Time
	listing chan struct{} // closed when the register was read; nil while nobody reads it
}

// peer is another replica.
type peer struct {
	name, url string

	asking   chan struct{} // closed at the end of a question; nil without one
	failed   bool          // the last one
	answered time.Time
	etag     string
	revision int64
	of       map[diag.Ref]standing
}

// peerView is what the others have said, at one moment.
type peerView struct {
	told   []peer
	silent []string // what is missing, as people read it
}

func newPeerBoard(peers Peers, log *slog.Logger) *peerBoard {
	return &peerBoard{peers: peers, log: log, known: map[string]*peer{}}
}

// look asks the others how it was after a time.
func (b *peerBoard) look(after time.Time) peerView {
	if b == nil || b.peers == nil {
		return peerView{}
	}
	patience := time.NewTimer(statusAge)
	defer patience.Stop()
	b.list()
	for _, answered := range b.ask(time.Since(after)) {
		select {
		case <-answered:
		case <-patience.C:
			return b.view()
		}
	}
	return b.view()
}

// list has the register read when that was long ago, and waits for it the first time.
func (b *peerBoard) list() {
	b.mu.Lock()
	if b.listing == nil && time.Since(b.listed) >= membersAge {
		b.listing = make(chan struct{})
		go b.readMembers(b.listing)
	}
	reading, first := b.listing, b.listed.IsZero()
	b.mu.Unlock()
	if !first {
		return
	}
	select {
	case <-reading:
	case <-time.After(statusAge):
	}
}

func (b *peerBoard) readMembers(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), peerTimeout)
	defer cancel()
	others, err := b.peers.Others(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	close(done)
	b.listing = nil
	if err != nil {
		b.log.Warn("the other replicas are not known", "error", err)
		return
	}
	b.listed = time.Now()
	maps.DeleteFunc(b.known, func(name string, p *peer) bool { return others[name] != p.url })
	for name, at := range others {
		if b.known[name] == nil {
			b.known[name] = &peer{name: name, url: at}
		}
	}
}

// ask asks all who are not being asked, and tells whom to wait for.
func (b *peerBoard) ask(age time.Duration) (answers []<-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.known {
		if p.asking == nil {
			p.asking = make(chan struct{})
			go b.askOne(p, age, p.etag, p.asking)
		}
		if !p.failed {
			answers = append(answers, p.asking)
		}
	}
	return answers
}

func (b *peerBoard) askOne(p *peer, age time.Duration, etag string, done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), peerTimeout)
	defer cancel()
	said, newer, err := standingsAt(ctx, p.url, age, etag)
	b.mu.Lock()
	defer b.mu.Unlock()
	defer close(done)
	p.asking, p.failed = nil, err != nil
	if err != nil {
		b.log.Debug("a replica does not tell how objects stand", "replica", p.name, "url", p.url, "error", err)
		return
	}
	p.answered = time.Now()
	if said == nil {
		return
	}
	p.etag, p.revision, p.of = newer, said.Revision, make(map[diag.Ref]standing, len(said.Objects))
	for _, s := range said.Objects {
		p.of[s.Object] = s
	}
}

// view is what is known now. Who has not answered for a while is silent.
func (b *peerBoard) view() peerView {
	b.mu.Lock()
	defer b.mu.Unlock()
	var v peerView
	if time.Since(b.listed) > membersLost {
		v.silent = append(v.silent, "the other replicas are not known at present")
	}
	for _, name := range slices.Sorted(maps.Keys(b.known)) {
		p := b.known[name]
		if time.Since(p.answered) > peerTimeout {
			v.silent = append(v.silent, "replica "+name+" does not answer, its proxies are missing")
			continue
		}
		v.told = append(v.told, *p)
	}
	return v
}

// standingsAt asks a replica for those of at most an age; nil when it has nothing new.
func standingsAt(ctx context.Context, base string, age time.Duration, etag string) (*standings, string, error) {
	var said standings
	newer, err := askPeer(ctx, base, []string{standingsPath}, url.Values{"maxAge": {max(age, 0).String()}}, etag, &said)
	if err != nil || newer == etag {
		return nil, etag, err
	}
	return &said, newer, nil
}

// fleetStanding is how an object stands with the proxies of all replicas.
type fleetStanding struct {
	discovery.Standing
	behind []string // replicas that have not published it yet
	silent []string // what is missing
}

// add puts what the others say of an object of a revision to what is known here.
func (v peerView) add(own discovery.Standing, ref diag.Ref, revision int64) fleetStanding {
	out := fleetStanding{Standing: own, silent: v.silent}
	for _, p := range v.told {
		s := p.of[ref]
		out.Proxies += s.Proxies
		if p.revision < revision {
			out.behind = append(out.behind, fmt.Sprintf("replica %s is at revision %d", p.name, p.revision))
			continue
		}
		out.Running += s.Running
		out.Refusals = slices.Concat(out.Refusals, s.Refusals)
	}
	return out
}
