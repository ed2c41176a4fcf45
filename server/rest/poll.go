package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/wire"
)

// poll has the fields of a v3 DiscoveryRequest that matter: about 200 bytes of the
// 77 KB that an Envoy sends each time.
type poll struct {
	Node    discovery.Node
	Envoy   string // its version, or "" if unknown
	Version string
	Names   []string
	TypeURL string
}

// identity describes the proxy that polls.
type identity struct {
	Node  discovery.Node
	Envoy string
}

// maxPoll bounds the body of a poll, in bytes. It is an order of magnitude above
// what an Envoy sends.
const maxPoll = 1 << 20

// pollBuffer is the memory of a poll before any of it has arrived.
const pollBuffer = 4 << 10

// Limits for the nodes that the server recognizes by their bytes: their number and their
// content, in bytes, in each of two halves, and the content of one. An id has about 60 bytes,
// and the labels of a workload less than 1 KiB. The server decodes a node without room each
// time.
const (
	maxNodes     = 1 << 16
	maxNodeBytes = 16 << 20
	maxNodeSize  = 2 << 10
)

// pollReader decodes polls. Most of a poll is the node, which lists everything
// compiled into the Envoy and is the same text every time, so pollReader recognizes
// nodes that it has decoded before by their hash. It is safe for concurrent use.
type pollReader struct {
	hasher  *nodeHasher
	buffers sync.Pool

	mu sync.RWMutex
	// When recent is full, it replaces older. Nodes in use move from older back to
	// recent.
	recent, older map[nodeHash]identity
	bytes         int // content of the nodes in recent
}

func newPollReader() *pollReader {
	return &pollReader{
		hasher:  newNodeHasher(),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
		recent:  map[nodeHash]identity{},
	}
}

// read decodes the poll in the body of a request. The error is an
// *http.MaxBytesError if the body is too large, an unsupported media type if its
// charset is not accepted, and otherwise a *badPollError.
func (p *pollReader) read(w http.ResponseWriter, r *http.Request) (poll, error) {
	if err := wire.CheckCharset(r); err != nil {
		return poll{}, err
	}
	if r.ContentLength > maxPoll {
		return poll{}, &http.MaxBytesError{Limit: maxPoll}
	}
	buf := p.buffers.Get().(*bytes.Buffer)
	defer p.buffers.Put(buf)
	buf.Reset()
	// A client may announce more than it sends, so the buffer grows with what arrives.
	// Most buffers are large enough from an earlier poll.
	buf.Grow(pollBuffer)
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, maxPoll))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return poll{}, err
	}
	if apierrors.IsTooManyRequests(err) {
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

// parse returns the same as decodePoll, but is fast for a body as Envoy writes it
// whose node is known.
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
		// The split is right only if the text taken for the node is one whole JSON value.
		// From now on its hash proves that.
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
	size := node.Node.Size() + len(node.Envoy)
	if len(p.recent) >= maxNodes || p.bytes+size > maxNodeBytes {
		p.recent, p.older, p.bytes = map[nodeHash]identity{}, p.recent, 0
	}
	if _, known := p.recent[h]; !known {
		p.bytes += size
	}
	p.recent[h] = node
}

// decodePoll decodes any JSON encoding of a poll, with both forms of names that
// proto JSON allows. It ignores unknown fields, because a newer Envoy may send
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
