package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"unicode/utf8"

	"github.com/pilot-api/pilot-api/discovery"
)

// poll is what matters of a v3 DiscoveryRequest: some 200 bytes out of the
// 77 KB that an Envoy sends each time.
type poll struct {
	Node    discovery.Node
	Envoy   string // its version, "" when it is not told
	Version string
	Names   []string
	TypeURL string
}

// identity is who asks.
type identity struct {
	Node  discovery.Node
	Envoy string
}

// maxPoll bounds the body of a poll, an order of magnitude above what an
// Envoy sends.
const maxPoll = 1 << 20

// pollBuffer is what a poll takes in memory before any of it has come.
const pollBuffer = 4 << 10

// Bounds of the nodes recognised by their bytes: their number, in each of two
// halves, and the length of what they say. An id is some 60 bytes, and the labels
// of a workload less than 1 KiB.
const (
	maxNodes    = 1 << 16
	maxNodeSize = 2 << 10
)

// pollReader reads polls. Most of a poll is the node, with a list of all that
// is compiled into the Envoy, and it is the same text every time: nodes that
// were decoded once are recognised by their hash. It is safe for concurrent
// use.
type pollReader struct {
	hasher  *nodeHasher
	buffers sync.Pool

	mu sync.RWMutex
	// When recent is full, it becomes older and older is forgotten. What is
	// still in use comes back into recent.
	recent, older map[nodeHash]identity
}

func newPollReader() *pollReader {
	return &pollReader{
		hasher:  newNodeHasher(),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
		recent:  map[nodeHash]identity{},
	}
}

// read reads the poll in the body of a request. The error is an
// *http.MaxBytesError when the body is too large, an unsupported one when its charset
// is not read, else a *badPollError.
func (p *pollReader) read(w http.ResponseWriter, r *http.Request) (poll, error) {
	if err := checkBodyCharset(r); err != nil {
		return poll{}, err
	}
	if r.ContentLength > maxPoll {
		return poll{}, &http.MaxBytesError{Limit: maxPoll}
	}
	buf := p.buffers.Get().(*bytes.Buffer)
	defer p.buffers.Put(buf)
	buf.Reset()
	// Who announces much may never send it: the buffer grows with what comes.
	// Most are large enough from an earlier poll.
	buf.Grow(pollBuffer)
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, maxPoll))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return poll{}, err
	}
	if err != nil {
		return poll{}, &badPollError{"the body broke off: " + err.Error()}
	}
	if !utf8.Valid(buf.Bytes()) {
		return poll{}, &badPollError{"the body must be UTF-8"}
	}
	out, err := p.parse(buf.Bytes())
	if err != nil {
		return poll{}, &badPollError{"the body is no DiscoveryRequest in JSON that can be answered: " + err.Error()}
	}
	return out, nil
}

// parse is exactly decodePoll, but quick for a body as Envoy writes it whose
// node was seen before.
func (p *pollReader) parse(body []byte) (poll, error) {
	out, node, ok := splitPoll(body)
	if !ok {
		return decodePoll(body)
	}
	hash := p.hasher.hash(node)
	if known, ok := p.lookup(hash); ok {
		out.Node, out.Envoy = known.Node, known.Envoy
		return out, nil
	}
	out, err := decodePoll(body)
	if err == nil && out.Node.Size() <= maxNodeSize && json.Valid(node) {
		// The split is right only if what it took for the node is one whole
		// JSON value. That it is one is known from now on by its hash.
		p.remember(hash, identity{out.Node, out.Envoy})
	}
	return out, err
}

func (p *pollReader) lookup(h nodeHash) (identity, bool) {
	p.mu.RLock()
	known, ok := p.recent[h]
	old, was := p.older[h]
	p.mu.RUnlock()
	if ok || !was {
		return known, ok
	}
	p.remember(h, old)
	return old, true
}

func (p *pollReader) remember(h nodeHash, node identity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.recent) >= maxNodes {
		p.recent, p.older = map[nodeHash]identity{}, p.recent
	}
	p.recent[h] = node
}

// decodePoll decodes any JSON spelling of a poll, in either case of names that
// proto JSON allows. What it does not know, it ignores: a newer Envoy may say
// more.
func decodePoll(body []byte) (poll, error) {
	var in struct {
		Version      string   `json:"version_info"`
		Node         pollNode `json:"node"`
		Names        []string `json:"resource_names"`
		TypeURL      string   `json:"type_url"`
		CamelVersion string   `json:"versionInfo"`
		CamelNames   []string `json:"resourceNames"`
		CamelTypeURL string   `json:"typeUrl"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return poll{}, err
	}
	node, err := in.Node.node()
	if err != nil {
		return poll{}, err
	}
	return poll{
		Version: cmp.Or(in.Version, in.CamelVersion),
		Node:    node,
		Envoy:   in.Node.Build.String(),
		Names:   append(in.Names, in.CamelNames...),
		TypeURL: cmp.Or(in.TypeURL, in.CamelTypeURL),
	}, nil
}
