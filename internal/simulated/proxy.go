// Package simulated provides proxies without an Envoy. Their streams subscribe to
// everything. As a test demands, they accept responses, hold back their answers, refuse
// them or end.
package simulated

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// Node returns the id of a different sidecar for each number.
func Node(n int) string {
	return fmt.Sprintf("sidecar~10.9.%d.%d~p-%03d.default~default.svc.cluster.local", n/250, n%250+1, n)
}

// Proxy is a proxy on a delta stream.
type Proxy struct {
	Node string

	stream *discovery.Stream
	leave  context.CancelFunc
	gone   chan struct{}

	mu     sync.Mutex
	holds  bool
	refuse map[string]refusal // by type
	held   []told
}

// refusal is what a proxy refuses of a type, and the error text.
type refusal struct {
	words   string
	matches func(text string) bool
}

// told is a response to answer, with the names that it refers to.
type told struct {
	typeURL, nonce string
	text           string // its encoding
	leads          string // their type
	to             []string
}

// Connect connects a proxy that accepts everything.
func Connect(p *discovery.Publisher, node string) (*Proxy, error) {
	return ConnectNode(p, mesh.Node{ID: node})
}

// ConnectNode is Connect for a node that may state more than its id. The proxy subscribes
// to some secrets, too, whose keys it may have.
func ConnectNode(p *discovery.Publisher, node mesh.Node, secrets ...string) (*Proxy, error) {
	stream, err := p.Connect(node, discovery.Delta)
	if err != nil {
		return nil, err
	}
	ctx, leave := context.WithCancel(context.Background())
	s := &Proxy{Node: node.ID, stream: stream, leave: leave, gone: make(chan struct{}), refuse: map[string]refusal{}}
	requests := []discovery.Request{{TypeURL: discovery.ClusterType, Subscribe: []string{"*"}}, {TypeURL: discovery.ListenerType, Subscribe: []string{"*"}}}
	if len(secrets) > 0 {
		stream.SendKeys(discovery.AllKeys())
		requests = append(requests, discovery.Request{TypeURL: discovery.SecretType, Subscribe: secrets})
	}
	for _, r := range requests {
		if err := stream.Receive(r); err != nil {
			stream.Close()
			leave()
			return nil, err
		}
	}
	go s.listen(ctx)
	return s, nil
}

func (s *Proxy) listen(ctx context.Context) {
	defer close(s.gone)
	defer s.stream.Close()
	for {
		r, err := s.stream.Next(ctx)
		if err != nil {
			return
		}
		var text discoveryv3.DeltaDiscoveryResponse
		own, shared := r.Encode()
		bytes := slices.Concat(own, *shared)
		if err := proto.Unmarshal(bytes, &text); err != nil {
			panic(err) // Only responses are sent.
		}
		t := told{typeURL: r.TypeURL, nonce: text.GetNonce(), text: string(bytes)}
		t.leads, t.to = references(&text)
		s.hear(t)
	}
}

func (s *Proxy) hear(t told) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds {
		s.held = append(s.held, t)
		return
	}
	s.answerLocked(t)
}

func (s *Proxy) answerLocked(t told) {
	r := discovery.Request{TypeURL: t.typeURL, Nonce: t.nonce}
	if f, some := s.refuse[t.typeURL]; some && f.matches(t.text) {
		r.Refused = &f.words
	} else if len(t.to) > 0 {
		s.say(discovery.Request{TypeURL: t.leads, Subscribe: t.to})
	}
	s.say(r)
}

func (s *Proxy) say(r discovery.Request) {
	if err := s.stream.Receive(r); err != nil {
		panic(err) // It requests only what exists.
	}
}

// Hold makes the proxy answer nothing from now on.
func (s *Proxy) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = true
}

// Held returns the number of responses that the proxy has received and does not answer.
func (s *Proxy) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// Refuse makes the proxy refuse all responses of a type from now on.
func (s *Proxy) Refuse(typeURL, words string) {
	s.refuseSome(typeURL, words, func(string) bool { return true })
}

// RefuseContaining makes the proxy refuse responses of a type from now on if their
// encoding contains something.
func (s *Proxy) RefuseContaining(typeURL, something, words string) {
	s.refuseSome(typeURL, words, func(text string) bool { return strings.Contains(text, something) })
}

func (s *Proxy) refuseSome(typeURL, words string, of func(text string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse[typeURL] = refusal{words, of}
}

// Accept makes the proxy accept what it holds back, and all later responses.
func (s *Proxy) Accept() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds, s.refuse = false, map[string]refusal{}
	for _, t := range s.held {
		s.answerLocked(t)
	}
	s.held = nil
}

// Lose ends the stream as a broken network does, without notice from the proxy.
func (s *Proxy) Lose() {
	s.stream.Lose()
	s.Leave()
}

// Leave ends the stream and returns when that is done.
func (s *Proxy) Leave() {
	s.leave()
	<-s.gone
}
