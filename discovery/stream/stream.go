package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
)

// Stream sends one proxy its configuration, and each change at once. Receive accepts a
// request, and Next returns the next response. Next computes the response from the
// configuration that the proxy should have, and from what it was sent and acked (order.go).
// There is no queue. One goroutine may call Receive while another calls Next.
type Stream struct {
	shared    *Shared
	proxy     Proxy
	delta     bool
	proxyless bool // a client of gRPC
	// onlySecrets: the proxy gets everything else in another way.
	onlySecrets bool
	keys        compiled.KeyScope // private keys that may be sent
	since       time.Time
	wake        chan struct{} // holds one: something may have changed

	mu        sync.Mutex
	nonce     uint64
	clusters  subscription
	endpoints subscription
	listeners subscription
	routes    subscription
	secrets   subscription
	gone      goneTables
	notAsked  notAsked
	own       ownSecrets
	hosts     *hosts             // that the proxy asks for; nil if it has all
	acked     *compiled.Streamed // the last Streamed that the proxy acked completely
	settled   atomic.Bool        // at least once
	routed    time.Time          // when a client of gRPC was last sent routes
	awaited   feedback.Awaited
	refuses   atomic.Bool // something, when that was last recorded
	pushed    atomic.Bool // out, by newer ones of the proxy
	silent    atomic.Bool // ended by EndUnanswered
	lost      atomic.Bool // not ended by the proxy
	ended     atomic.Bool
	closed    bool
	arrival   time.Time          // of a proxy that came with clusters; zero once it is known what the proxy routes by
	pastViews []*compiled.View   // views that it may route by until then
	look      time.Time          // end of a wait at which Next looks again
	patience  *time.Timer        // wakes Next at that time
	emptied   map[string]emptied // endpoint sets, by name
}

// Variant is a variant of the protocol. It decides which resources a response has.
type Variant bool

const (
	// StateOfTheWorld responses have all clusters or all listeners.
	StateOfTheWorld Variant = false
	// Delta responses have only the differences.
	Delta Variant = true
)

// Request is a request of a proxy about one type. A state-of-the-world client uses Names and
// Version, a delta client Subscribe, Unsubscribe and Initial.
type Request struct {
	TypeURL string
	Nonce   string // of the response that it answers, "" for none
	// Refused is the client's message if it nacks that response, nil if it acks it.
	Refused *string

	Names   []string
	Version string

	Subscribe, Unsubscribe []string
	Initial                map[string]string // versions by name
}

// Errors of a stream.
var (
	// ErrGone means that the proxy or its stream was dropped to make room. The proxy may
	// connect again.
	ErrGone = errors.New("too many proxies: this one made room")
	// ErrUnanswered means that the proxy has not answered for long, while much has changed.
	ErrUnanswered = errors.New("the proxy has not answered a response for long")
	// ErrTooMany means that a proxy subscribes to more names than any proxy needs.
	ErrTooMany = errors.New("too many resource names")
)

// Limits for the names of a type that a stream subscribes to. Names that all streams of its
// kind share do not count.
const (
	maxStreamNames = 1 << 17
	maxNameBytes   = 8 << 20
)

// Shared has the state that all streams share.
type Shared struct {
	Encoder     *compiled.Encoder
	Contents    *xds.Contents // of the responses that streams are sending
	Convergence *feedback.Convergence
	// Revision returns the published revision.
	Revision func() int64
}

// Proxy is the proxy of a stream, as this package needs it. Its methods may be called
// under the lock of a stream.
type Proxy interface {
	// ID returns the id of its node, and Address its address.
	ID() string
	Address() string
	// View returns the view that the proxy should have, or nil if there is none yet.
	View() *compiled.View
	// IsGone reports whether the proxy was dropped to make room for others.
	IsGone() bool
	// PastViews returns views that a proxy that connects may be at, if they have clusters
	// that next lacks, oldest first. is reports whether the proxy is known to be at a view.
	PastViews(next *compiled.View, is func(*compiled.View) bool) []*compiled.View
	// RevisionInEffect returns the revision that a proxy runs if it has acked its whole view.
	// published is the published revision.
	RevisionInEffect(of *compiled.View, published int64) int64
	// RevisionBefore returns the revision that a proxy runs if it is at an older view and
	// should be at one that shows next first. until is the first revision that the older view
	// does not show; 0 means that nothing has replaced it.
	RevisionBefore(at *compiled.View, until, next int64) int64
	// Call gives the proxy the view for other called hosts. Afterwards View returns it,
	// unless it cannot be compiled.
	Call(*mesh.Called)
	// Keep keeps for a while what remains of a stream that ends; nil for nothing. Remains
	// returns what remains of an earlier one than a stream, or nil for nothing.
	Keep(*Remains)
	Remains(*Stream) *Remains
	// Closed is called after a stream has ended.
	Closed(*Stream)
	// NacksChanged is called when a stream begins or ceases to nack something.
	NacksChanged()
}

// errNoView means that the proxy has no view yet.
var errNoView = errors.New("no view yet")

// New begins a stream. The caller must Close it.
func New(shared *Shared, proxy Proxy, variant Variant) *Stream {
	st := &Stream{
		shared: shared, proxy: proxy, delta: bool(variant), since: time.Now(),
		wake:      make(chan struct{}, 1),
		clusters:  subscription{typeURL: xds.ClusterType},
		endpoints: subscription{typeURL: xds.EndpointType},
		listeners: subscription{typeURL: xds.ListenerType},
		routes:    subscription{typeURL: xds.RouteType},
		secrets:   subscription{typeURL: xds.SecretType},
	}
	st.routes.clusters, st.listeners.clusters = &st.clusters.nacks, &st.clusters.nacks
	st.listeners.address = proxy.Address()
	st.awaited.Over = st.Transport()
	return st
}

// NewProxyless is New for a gRPC client without a proxy. Such a client uses the
// state-of-the-world variant and asks for everything by name.
func NewProxyless(shared *Shared, proxy Proxy) *Stream {
	st := New(shared, proxy, StateOfTheWorld)
	st.proxyless, st.routes.clusters, st.listeners.clusters = true, nil, nil
	for _, t := range st.subscriptions() {
		t.byName = true
	}
	st.awaited.Over = st.Transport()
	return st
}

// IsProxyless reports whether the stream is that of a client of gRPC.
func (st *Stream) IsProxyless() bool { return st.proxyless }

// Since returns when the stream began.
func (st *Stream) Since() time.Time { return st.since }

// HasSettled reports whether the proxy has at least once acked everything that it should
// have.
func (st *Stream) HasSettled() bool { return st.settled.Load() }

// Awaited returns the changes that the proxy has not accepted yet.
func (st *Stream) Awaited() *feedback.Awaited { return &st.awaited }

// HasNacks reports whether the proxy refuses something, when that was last recorded.
func (st *Stream) HasNacks() bool { return st.refuses.Load() }

// unansweredFor is how long a response may be unanswered in any case. It is twice the time
// for which an Envoy may withhold its answer.
const unansweredFor = 2 * pastviews.WarmingBound

// EndUnanswered ends the stream if the proxy has left a response unanswered for long, and
// the view of the response was replaced at a revision or before. The response keeps that
// view in memory. A proxy that still runs connects again.
func (st *Stream) EndUnanswered(by int64) {
	if !st.mu.TryLock() {
		return // It is being served.
	}
	all := st.subscriptions()
	late := slices.ContainsFunc(all[:], func(t *subscription) bool { return t.isUnanswered(by) })
	st.mu.Unlock()
	if late {
		st.silent.Store(true)
		st.Awake()
	}
}

// isUnanswered reports whether the oldest response in flight is late, and its view was
// replaced at a revision or before.
func (t *subscription) isUnanswered(by int64) bool {
	if len(t.inFlight) == 0 {
		return false
	}
	oldest := t.inFlight[0]
	if oldest.At.View == nil || time.Since(oldest.since) < unansweredFor {
		return false
	}
	until := oldest.At.View.Until.Load()
	return until != 0 && until <= by
}

// PushOut ends the stream because a newer stream of the proxy replaces it.
func (st *Stream) PushOut() {
	st.pushed.Store(true)
	st.Awake()
}

// Lose is Close for a stream that the proxy did not end itself. The proxy may still run,
// and the server waits for its return.
func (st *Stream) Lose() {
	st.lost.Store(true)
	st.Close()
}

// IsLost reports whether the proxy did not end the stream itself.
func (st *Stream) IsLost() bool { return st.lost.Load() }

// Close ends the stream. Only the first call does something.
func (st *Stream) Close() {
	if st.ended.Swap(true) {
		return
	}
	st.mu.Lock()
	st.proxy.Keep(st.remainsLocked())
	st.mu.Unlock()
	st.proxy.Closed(st)
	st.shared.Convergence.Depart(&st.awaited)
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.patience != nil {
		st.patience.Stop()
	}
	if st.own.stop != nil {
		st.own.stop()
	}
	st.closed = true
	st.refuses.Store(false)
	st.proxy.NacksChanged()
}

// IsWoken reports whether Next was woken and has not looked for a response yet.
func (st *Stream) IsWoken() bool { return len(st.wake) > 0 }

// Awake makes Next look again.
func (st *Stream) Awake() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// Receive accepts a request. An error ends the stream.
func (st *Stream) Receive(r Request) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.hosts != nil && r.TypeURL == xds.VirtualHostType && !st.closed {
		defer st.Awake()
		return st.shared.Encoder.Contain("request", func() error { st.receiveHosts(r); return nil })
	}
	t := st.subscriptionTo(r.TypeURL)
	if t == nil || st.closed {
		// A client may ask for types that are not served here. It gets none.
		return nil
	}
	return st.shared.Encoder.Contain("request", func() error {
		if err := st.receive(t, r); err != nil {
			return err
		}
		st.noteRefusing()
		st.Awake()
		return nil
	})
}

func (st *Stream) subscriptionTo(typeURL string) *subscription {
	for _, t := range st.subscriptions() {
		if t.typeURL == typeURL {
			return t
		}
	}
	return nil
}

func (st *Stream) receive(t *subscription, r Request) error {
	st.notAsked = notAsked{}
	current := t.answered(r)
	switch {
	case st.delta:
		t.subscribeDelta(r)
	case current:
		t.subscribeTo(r)
	}
	if max(t.named.len(), len(t.pending.names)) > maxStreamNames {
		return fmt.Errorf("%w of %s: the most allowed are %d", ErrTooMany, t.typeURL, maxStreamNames)
	}
	most := maxNameBytes
	if st.proxyless {
		most = maxClientNameBytes
	}
	if max(t.named.bytes, t.pending.bytes) > most {
		return fmt.Errorf("%w of %s: together they may have %d bytes", ErrTooMany, t.typeURL, most)
	}
	target, err := st.target()
	if err != nil {
		return nil // There is no view yet.
	}
	if t == &st.endpoints {
		t.named.share(target.Endpoints)
	}
	if t == &st.routes && st.hosts != nil {
		st.hosts.open(r.Subscribe)
	}
	if len(r.Initial) > 0 && !st.awaitsHosts() {
		st.meet(target) // Not only when a response is due: until then the versions take memory.
	}
	return nil
}

// Next waits for the next response and returns it. The error is ctx's, ErrGone or
// ErrUnanswered.
func (st *Stream) Next(ctx context.Context) (*xds.Response, error) {
	for {
		if st.proxy.IsGone() || st.pushed.Load() {
			return nil, ErrGone
		}
		if st.silent.Load() {
			return nil, ErrUnanswered
		}
		if r := st.due(); r != nil {
			return r, nil
		}
		select {
		case <-st.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (st *Stream) due() (r *xds.Response) {
	st.mu.Lock()
	defer st.mu.Unlock()
	// A bug of the server is logged, and the proxy keeps what it has.
	_ = st.shared.Encoder.Contain("response", func() error {
		target, err := st.target()
		if err != nil {
			return err
		}
		next := st.next(target)
		st.noteRefusing()
		if next == nil {
			st.settle(target)
			st.conclude(target)
		}
		r = next
		return nil
	})
	return r
}

// target returns what the proxy should have.
func (st *Stream) target() (*compiled.Streamed, error) {
	v := st.proxy.View()
	if v == nil {
		return nil, errNoView
	}
	if st.proxyless {
		return v.Proxyless()
	}
	return v.Streamed(st.proxy.Address())
}
