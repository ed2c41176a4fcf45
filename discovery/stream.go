package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
)

// Stream is one proxy on a connection over which it is told of a change at once:
// Receive takes what it says, Next gives what it is told. What is told, and in what
// order, follows from what the proxy should have and from what it was sent and has
// acknowledged (streamorder.go); there is no queue. The two may be called from two
// goroutines.
type Stream struct {
	server    *Publisher
	client    *client
	delta     bool
	proxyless bool // a client of gRPC
	keys      bool // are sent too
	since     time.Time
	wake      chan struct{} // holds one: something may have changed

	mu        sync.Mutex
	nonce     uint64
	clusters  subscribed
	endpoints subscribed
	listeners subscribed
	routes    subscribed
	secrets   subscribed
	at        *compiled.Streamed // all of which the proxy has acknowledged
	settled   atomic.Bool        // once or more
	routed    time.Time          // when a client of gRPC was last told routes
	awaited   feedback.Awaited
	refuses   atomic.Bool // something, as was noted last
	pushed    atomic.Bool // out, by newer ones of the proxy
	closed    bool
	arrival   time.Time        // of a proxy that came with clusters, until it is known what it routes by
	past      []*compiled.View // that it may route by until then
	look      time.Time        // when Next looks again for the end of a wait
	patience  *time.Timer      // that wakes it then
}

// Variant is one of the protocol's two: what a response holds.
type Variant bool

const (
	// StateOfTheWorld responses hold all of a type's clusters or listeners.
	StateOfTheWorld Variant = false
	// Delta responses hold what differs.
	Delta Variant = true
)

// Request is what a proxy says about one type. A state-of-the-world client says
// Names and Version, a delta client Subscribe, Unsubscribe and Initial.
type Request struct {
	TypeURL string
	Nonce   string // of the response that it answers, "" for none
	// Refused are the client's words about that response; nil when it accepts.
	Refused *string

	Names   []string
	Version string

	Subscribe, Unsubscribe []string
	Initial                map[string]string // versions by name
}

// Errors of a stream.
var (
	// ErrGone: the proxy, or the stream, had to make room for others; it may connect
	// again.
	ErrGone = errors.New("too many proxies: this one made room")
	// ErrTooMany: a proxy asks for more names than anybody has.
	ErrTooMany = errors.New("too many resource names")
)

// Bounds of the names of a type that a stream subscribes to by name. Those that all
// of its kind share take no bytes.
const (
	maxStreamNames = 1 << 17
	maxNameBytes   = 8 << 20
)

// Connect begins a stream of the proxy that calls itself so. It fails as V3
// does. The caller must Close it.
func (s *Publisher) Connect(node mesh.Node, variant Variant) (*Stream, error) {
	return s.connect(node, func(st *Stream) { st.delta = bool(variant) })
}

func (s *Publisher) connect(node mesh.Node, as func(*Stream)) (*Stream, error) {
	p, _, err := s.locate(node)
	if err != nil {
		return nil, err
	}
	st := &Stream{
		server: s, client: p.client, since: time.Now(),
		wake:      make(chan struct{}, 1),
		clusters:  subscribed{typeURL: xds.ClusterType},
		endpoints: subscribed{typeURL: xds.EndpointType},
		listeners: subscribed{typeURL: xds.ListenerType},
		routes:    subscribed{typeURL: xds.RouteType},
		secrets:   subscribed{typeURL: xds.SecretType},
	}
	as(st)
	st.awaited.Over = st.Transport()
	if st.proxyless {
		p.slot.usesProxyless.Store(true)
	} else {
		p.slot.usesStreams.Store(true)
	}
	s.fleet.connect(st)
	return st, nil
}

// Close ends the stream.
func (st *Stream) Close() {
	st.server.fleet.disconnect(st)
	st.server.convergence.Depart(&st.awaited)
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.patience != nil {
		st.patience.Stop()
	}
	st.closed = true
	st.refuses.Store(false)
	st.server.fleet.noteRefusing(st.client)
}

// awake has Next look again.
func (st *Stream) awake() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// Receive takes a request. The error ends the stream.
func (st *Stream) Receive(r Request) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	t := st.of(r.TypeURL)
	if t == nil || st.closed {
		// A client may ask for types that are not served here, and lives without.
		return nil
	}
	return st.server.recoverPanic("request", func() error {
		if err := st.receive(t, r); err != nil {
			return err
		}
		st.noteRefusing()
		st.awake()
		return nil
	})
}

func (st *Stream) of(typeURL string) *subscribed {
	for _, t := range st.types() {
		if t.typeURL == typeURL {
			return t
		}
	}
	return nil
}

func (st *Stream) receive(t *subscribed, r Request) error {
	current := t.answered(r)
	switch {
	case st.delta:
		t.subscribeDelta(r)
	case current:
		t.subscribeTo(r)
	}
	if max(t.named.len(), len(t.owed.names)) > maxStreamNames {
		return fmt.Errorf("%w of %s: the most allowed are %d", ErrTooMany, t.typeURL, maxStreamNames)
	}
	most := maxNameBytes
	if st.proxyless {
		most = maxClientNameBytes
	}
	if max(t.named.bytes, t.owed.bytes) > most {
		return fmt.Errorf("%w of %s: together they may have %d bytes", ErrTooMany, t.typeURL, most)
	}
	if target, err := st.target(); err == nil && t == &st.endpoints {
		t.named.share(target.Endpoints)
	}
	return nil
}

// Next is the next response that the proxy is due, as soon as there is one. The
// error is ctx's, or ErrGone.
func (st *Stream) Next(ctx context.Context) (*xds.Response, error) {
	for {
		if st.client.gone.Load() || st.pushed.Load() {
			return nil, ErrGone
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
	// Of a mistake of ours, which is told elsewhere, the proxy keeps what it has.
	_ = st.server.recoverPanic("response", func() error {
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

// target is what the proxy should have.
func (st *Stream) target() (*compiled.Streamed, error) {
	v := st.client.toldView()
	if v == nil {
		return nil, ErrNotReady
	}
	if st.proxyless {
		return v.Proxyless()
	}
	return v.Streamed(st.client.proxy.IP)
}
