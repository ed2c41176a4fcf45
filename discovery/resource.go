package discovery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/envoy/v3"
)

// digest is a content hash.
type digest [sha256.Size]byte

func sum(content []byte) digest { return sha256.Sum256(content) }

// version is how a digest is shown to a proxy.
func (d digest) version() string { return hex.EncodeToString(d[:16]) }

// resource is one v3 resource, encoded as an element of an answer: a proto
// JSON Any. It is immutable and shared by every view that has the same.
type resource struct {
	typeURL string
	name    string
	hash    digest
	json    []byte

	alone lazy[Answer]
}

// answer holds this resource and no other, for a poll by its name.
func (r *resource) answer() Answer {
	a, _ := r.alone.get(func() (*Answer, error) {
		a := compose(r.typeURL, []string{r.name}, []*resource{r})
		return &a, nil
	})
	return *a
}

// compose encodes a DiscoveryResponse. The version covers the names that were
// asked for besides the content, so that an equal version means that both are
// unchanged. The resources must be sorted by name.
func compose(typeURL string, names []string, resources []*resource) Answer {
	h := sha256.New()
	for _, n := range names {
		fmt.Fprintf(h, "%d:%s", len(n), n)
	}
	size := 0
	for _, r := range resources {
		h.Write(r.hash[:])
		size += len(r.json) + 1
	}
	version := digest(h.Sum(nil)).version()
	head := fmt.Sprintf(`{"version_info":%q,"type_url":%q,"resources":[`, version, typeURL)
	body := make([]byte, 0, len(head)+size+2)
	body = append(body, head...)
	for i, r := range resources {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, r.json...)
	}
	return Answer{Version: version, Body: append(body, "]}"...)}
}

// pool finds equal resources across views, and across one generation to the
// next: what did not change is neither checked nor encoded again.
type pool struct {
	max int // resources kept; more are encoded, but not shared

	mu   sync.Mutex
	now  map[digest]*resource
	last map[digest]*resource
}

func newPool(max int, before *generation) *pool {
	p := &pool{max: max, now: map[digest]*resource{}}
	if before != nil {
		// A copy: the generation before still serves and may grow.
		before.pool.mu.Lock()
		p.last = maps.Clone(before.pool.now)
		before.pool.mu.Unlock()
	}
	return p
}

func (p *pool) find(hash digest) *resource {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.now[hash]; r != nil {
		return r
	}
	r := p.last[hash]
	if r != nil && len(p.now) < p.max {
		p.now[hash] = r
	}
	return r
}

func (p *pool) add(r *resource) *resource {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.now[r.hash]; first != nil {
		return first
	}
	if len(p.now) < p.max {
		p.now[r.hash] = r
	}
	return r
}

// resource encodes a message, unless an equal one is known.
func (p *pool) resource(typeURL, name string, m v3.Message) (*resource, error) {
	hash, err := fingerprint(typeURL, m)
	if err != nil {
		return nil, err
	}
	if r := p.find(hash); r != nil {
		return r, nil
	}
	r, err := encodeAs(hash, typeURL, name, m)
	if err != nil {
		return nil, err
	}
	return p.add(r), nil
}

// encode checks and encodes a message. The error is most often that Envoy would
// refuse it, and the whole answer with it.
func encode(typeURL, name string, m v3.Message) (*resource, error) {
	hash, err := fingerprint(typeURL, m)
	if err != nil {
		return nil, err
	}
	return encodeAs(hash, typeURL, name, m)
}

func encodeAs(hash digest, typeURL, name string, m v3.Message) (*resource, error) {
	if err := v3.Check(m); err != nil {
		return nil, err
	}
	text, err := anyJSON(typeURL, m)
	if err != nil {
		return nil, err
	}
	return &resource{typeURL: typeURL, name: name, hash: hash, json: text}, nil
}

// fingerprint hashes the binary form: that of protojson is not stable.
func fingerprint(typeURL string, m v3.Message) (digest, error) {
	content, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte(typeURL+"\n"), m)
	return sum(content), err
}

// anyJSON is the message as an Any. Compacted, because protojson varies its
// white space from one build to the next on purpose.
func anyJSON(typeURL string, m proto.Message) ([]byte, error) {
	spaced, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var fields bytes.Buffer
	if err := json.Compact(&fields, spaced); err != nil {
		return nil, err
	}
	if fields.Len() == len("{}") {
		return fmt.Appendf(nil, `{"@type":%q}`, typeURL), nil
	}
	return append(fmt.Appendf(nil, `{"@type":%q,`, typeURL), fields.Bytes()[1:]...), nil
}
