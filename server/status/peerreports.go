package status

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
	"github.com/pilot-api/pilot-api/server/replica"
)

// membersAge is the age up to which the list of replicas is used, unless the caller
// asks for the current state. After membersLost the list counts as unknown, and a
// replica that failed to answer is waited for again.
const (
	membersAge  = time.Second
	membersLost = 5 * time.Second
)

// peerReports has the statuses that the other replicas report for their proxies. It
// queries them when a caller looks at it, and does not wait for a replica that has
// just failed to answer.
type peerReports struct {
	peers replica.Peers
	log   *slog.Logger
	ask   func(ctx context.Context, of replica.Replica, age time.Duration, etag string) (*Report, string, error)

	mu       sync.Mutex
	register inquiry
	known    map[string]*peer
	moved    time.Time // when a replica was last seen to come, go, or be missing
}

// peer is another replica.
type peer struct {
	inquiry
	replica.Replica

	answered time.Time
	etag     string
	revision int64
	awaiting bool
	returns  int // Report.Returning
	reports  map[diag.Ref]objectReport
}

// inquiry is a query that is repeated, one at a time.
type inquiry struct {
	asOf     time.Time // the last answer is not older than this
	underway *question
	failed   time.Time // when the last query failed; zero after an answer
}

type question struct {
	asOf time.Time
	done chan struct{}
}

// peerSnapshot has the reports of the other replicas at one moment.
type peerSnapshot struct {
	answers []peer
	silent  []string // what is missing, as text for people
	awaited []string // replicas whose proxies may be on their way back, as text for people
	gone    []string // replicas that died, whose proxies do not count, as text for people
	// returning are proxies that are awaited, and it is not known which objects concern them.
	returning int
	// moved is when a replica was last seen to come, go, or be missing. What this replica knows
	// about the proxies of the others must be as new.
	moved time.Time
}

func newPeerReports(opts Options) *peerReports {
	return &peerReports{peers: opts.Peers, log: opts.Log, ask: reportsAt(opts.ReportPath), known: map[string]*peer{}}
}

// look returns the state of the others after a time. If the caller wants the
// current state, look waits for it and lists the replicas that have not reported
// it. Otherwise a report of a moment ago will do.
func (b *peerReports) look(after time.Time) peerSnapshot {
	if b.peers == nil {
		return peerSnapshot{}
	}
	now := time.Now()
	patience, listed, said := Age, now.Add(-membersAge), time.Time{}
	if now.Sub(after) < Age {
		patience, listed, said = replica.Timeout, after, after
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
	return b.snapshot(said)
}

// await waits for a peer's answer that is not older than after. It sends a query
// unless such an answer is known or on its way. The answer to a new query counts as
// of asOf, which is not before after.
func (b *peerReports) await(ctx context.Context, of *inquiry, after, asOf time.Time, ask func(context.Context) error) {
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

// put sends a query that continues even if its caller has given up.
func (b *peerReports) put(of *inquiry, q *question, ask func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), replica.Timeout)
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

func (b *peerReports) readMembers(ctx context.Context) error {
	others, err := b.peers.Others(ctx)
	if err != nil {
		b.log.Warn("the other replicas are not known", "error", err)
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	known := map[string]*peer{}
	moved := len(others) != len(b.known)
	for _, other := range others {
		p := b.known[other.Name]
		moved = moved || p == nil || p.Missing.IsZero() != other.Missing.IsZero()
		if p == nil || p.URL != other.URL {
			p = &peer{}
		}
		p.Replica, known[other.Name] = other, p
	}
	if b.known = known; moved {
		b.moved = time.Now()
	}
	return nil
}

func (b *peerReports) members() []*peer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.known))
}

func (b *peerReports) askOne(ctx context.Context, p *peer, age time.Duration) error {
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
	p.etag, p.revision, p.awaiting, p.returns, p.reports = newer, said.Revision, said.Awaiting, said.Returning, make(map[diag.Ref]objectReport, len(said.Objects))
	for _, s := range said.Objects {
		p.reports[s.Object] = s
	}
	return nil
}

// snapshot returns the present state. Its silent replicas are those that have not
// answered for a while, or whose last answer is older than after, unless the register
// says that they are missing: those are gone.
func (b *peerReports) snapshot(after time.Time) peerSnapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := peerSnapshot{moved: b.moved}
	if b.register.asOf.Before(after) || time.Since(b.register.asOf) > membersLost {
		all.silent = append(all.silent, "the other replicas are not known at present")
	}
	if since, is := b.peers.CutOff(); is {
		all.silent = append(all.silent, "this replica is cut off from the store since "+since.Format(time.TimeOnly))
	}
	for _, name := range slices.Sorted(maps.Keys(b.known)) {
		p := b.known[name]
		if p.asOf.Before(after) || time.Since(p.answered) > replica.Timeout {
			// A replica that is missing has been silent for a lease already. If it is not
			// dead but cut off, its proxies get no changes.
			if !p.Missing.IsZero() {
				all.gone = append(all.gone, p.Silence()+": its proxies do not count")
				continue
			}
			all.silent = append(all.silent, p.Silence()+", its proxies are missing")
			continue
		}
		all.answers = append(all.answers, *p)
		all.returning += p.returns
		if p.awaiting {
			all.awaited = append(all.awaited, "replica "+p.Name+" was started a moment ago")
		}
	}
	return all
}

// reportsAt asks replicas for their reports of at most an age at a path. The result is nil
// if nothing has changed.
func reportsAt(path string) func(ctx context.Context, of replica.Replica, age time.Duration, etag string) (*Report, string, error) {
	return func(ctx context.Context, of replica.Replica, age time.Duration, etag string) (*Report, string, error) {
		var said Report
		newer, err := replica.Ask(ctx, of, []string{path}, url.Values{"maxAge": {max(age, 0).String()}}, etag, &said)
		if err != nil || newer == etag {
			return nil, etag, err
		}
		return &said, newer, nil
	}
}

// lag describes a replica that has not published a revision.
func (p peer) lag() string {
	text := fmt.Sprintf("replica %s is at revision %d", p.Name, p.revision)
	if !p.Missing.IsZero() {
		text += ", and cut off from the store since " + p.Missing.Format(time.TimeOnly)
	}
	return text
}
