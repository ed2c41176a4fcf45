package discovery

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Response is what a stream tells its proxy about one type. It is immutable.
type Response struct {
	TypeURL string

	delta     bool
	version   string
	nonce     string
	resources []*resource
	differing []*resource // those of them that were not sent before, or are owed
	removed   []string
	leadsTo   *set // what the proxy has when it accepts
}

func nonceOf(count uint64) string { return strconv.FormatUint(count, 36) }

// respond is what leads to a set from what was sent, but for the nonce; nil where
// nothing does. find is for names that the set need not have.
func (t *subscribed) respond(to at, find func(string) *resource, delta bool) *Response {
	desired := t.takes(to.set)
	r := &Response{TypeURL: t.typeURL, delta: delta, leadsTo: desired}
	d := desired.since(t.sent.set)
	for _, c := range d.changed {
		if t.wants(c.name) {
			r.resources = append(r.resources, c)
		}
	}
	if t.wild() && t.sent.set != nil {
		for _, name := range d.removed {
			if t.wants(name) {
				r.removed = append(r.removed, name)
			}
		}
	}
	t.pay(r, desired, find)
	if len(r.resources) == 0 && len(r.removed) == 0 && !t.owed[wildcard] {
		if len(t.owed) > 0 {
			t.owed = nil // Of refused things, which are not sent.
		}
		return nil
	}
	r.version, r.differing = desired.version, r.resources
	switch {
	case delta:
	case t.wild():
		// What is not among it is removed.
		r.resources, r.removed = t.allWanted(desired), nil
	default:
		r.version = versionOf(nil, r.resources)
	}
	return r
}

// pay adds what is owed.
func (t *subscribed) pay(r *Response, desired *set, find func(string) *resource) {
	for name := range t.owed {
		if name == wildcard || slices.ContainsFunc(r.resources, func(c *resource) bool { return c.name == name }) {
			continue
		}
		c := desired.named(name)
		if c == nil && !t.wild() {
			c = find(name)
		}
		switch {
		case c != nil && !t.holds(c):
			r.resources = append(r.resources, c)
		case c == nil && t.wild() && !slices.Contains(r.removed, name):
			r.removed = append(r.removed, name)
		}
	}
	slices.SortFunc(r.resources, func(a, b *resource) int { return strings.Compare(a.name, b.name) })
	slices.Sort(r.removed)
}

// allWanted is all of a set that the proxy asks for.
func (t *subscribed) allWanted(s *set) []*resource {
	if t.all {
		return s.sorted
	}
	return slices.Collect(func(yield func(*resource) bool) {
		for _, r := range s.sorted {
			if t.wants(r.name) && !yield(r) {
				return
			}
		}
	})
}

// Fields of a DiscoveryResponse and of a DeltaDiscoveryResponse, which have the
// same numbers, of a Resource and of an Any.
const (
	fieldVersion   = 1
	fieldResources = 2
	fieldTypeURL   = 4
	fieldNonce     = 5
	fieldRemoved   = 6

	fieldResourceVersion = 1
	fieldResourceAny     = 2
	fieldResourceName    = 3

	fieldAnyType  = 1
	fieldAnyValue = 2
)

// Encode is the response as a DiscoveryResponse, or as a DeltaDiscoveryResponse on
// a delta stream.
func (r *Response) Encode() []byte {
	out := appendText(nil, fieldVersion, r.version)
	for _, c := range r.resources {
		if r.delta {
			out = c.appendResource(out)
		} else {
			out = protowire.AppendTag(out, fieldResources, protowire.BytesType)
			out = protowire.AppendVarint(out, uint64(c.sizeAny()))
			out = c.appendAny(out)
		}
	}
	out = appendText(out, fieldTypeURL, r.TypeURL)
	for _, name := range r.removed {
		out = appendText(out, fieldRemoved, name)
	}
	return appendText(out, fieldNonce, r.nonce)
}

func appendText(out []byte, field protowire.Number, text string) []byte {
	out = protowire.AppendTag(out, field, protowire.BytesType)
	return protowire.AppendString(out, text)
}

// appendResource appends a field of a DeltaDiscoveryResponse.
func (r *resource) appendResource(out []byte) []byte {
	version := r.hash.version()
	size := sizeText(fieldResourceName, r.name) + sizeText(fieldResourceVersion, version) +
		protowire.SizeTag(fieldResourceAny) + protowire.SizeBytes(r.sizeAny())
	out = protowire.AppendTag(out, fieldResources, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(size))
	out = appendText(out, fieldResourceVersion, version)
	out = protowire.AppendTag(out, fieldResourceAny, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(r.sizeAny()))
	out = r.appendAny(out)
	return appendText(out, fieldResourceName, r.name)
}

func sizeText(field protowire.Number, text string) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(len(text))
}

func (r *resource) appendAny(out []byte) []byte {
	out = appendText(out, fieldAnyType, r.typeURL)
	out = protowire.AppendTag(out, fieldAnyValue, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(r.size()))
	return r.appendBinary(out)
}

func (r *resource) sizeAny() int {
	return sizeText(fieldAnyType, r.typeURL) + protowire.SizeTag(fieldAnyValue) + protowire.SizeBytes(r.size())
}
