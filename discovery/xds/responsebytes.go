package xds

import "google.golang.org/protobuf/encoding/protowire"

// Field numbers in protobuf. DiscoveryResponse and DeltaDiscoveryResponse have the same
// ones; the others are those of Resource and Any.
const (
	fieldVersion   = 1
	fieldResources = 2
	fieldTypeURL   = 4
	fieldNonce     = 5
	fieldRemoved   = 6

	fieldResourceVersion = 1
	fieldResourceAny     = 2
	fieldResourceName    = 3
	fieldResourceAlias   = 4

	fieldAnyType  = 1
	fieldAnyValue = 2
)

// Encode returns the response as a DiscoveryResponse or, on a delta stream, as a
// DeltaDiscoveryResponse. It returns two parts: own is for this stream alone, and all
// streams share the other. The two parts joined in either order are the message. The caller
// must not change them.
func (r *Response) Encode() (own []byte, shared *[]byte) {
	own = make([]byte, 0, sizeText(fieldVersion, r.Version)+sizeText(fieldNonce, r.Nonce))
	own = appendText(own, fieldVersion, r.Version)
	return appendText(own, fieldNonce, r.Nonce), r.Content.bytes.Get(r.Content.encode)
}

func (c *Content) encode() *[]byte {
	out := make([]byte, 0, c.size())
	for _, r := range c.Resources {
		out = appendHead(out, fieldResources, c.sizeOf(r))
		if c.Delta {
			out = r.appendResource(out)
		} else {
			out = r.appendAny(out)
		}
	}
	out = appendText(out, fieldTypeURL, c.TypeURL)
	for _, name := range c.Removed {
		out = appendText(out, fieldRemoved, name)
	}
	for _, name := range c.Complete {
		out = appendHead(out, fieldResources, sizeComplete(name))
		out = appendText(appendText(out, fieldResourceName, name), fieldResourceAlias, name)
	}
	return &out
}

// Size returns the length of the part that is shared.
func (r *Response) Size() int { return r.Content.size() }

func (c *Content) size() int {
	size := sizeText(fieldTypeURL, c.TypeURL)
	for _, r := range c.Resources {
		size += sizeField(fieldResources, c.sizeOf(r))
	}
	for _, name := range c.Removed {
		size += sizeText(fieldRemoved, name)
	}
	for _, name := range c.Complete {
		size += sizeField(fieldResources, sizeComplete(name))
	}
	return size
}

// sizeComplete returns the length of a Resource that has only a name, which is its alias
// too. An Envoy refuses one without a message and without an alias.
func sizeComplete(name string) int {
	return sizeText(fieldResourceName, name) + sizeText(fieldResourceAlias, name)
}

func (c *Content) sizeOf(r *Resource) int {
	if c.Delta {
		return r.sizeResource()
	}
	return r.sizeAny()
}

// appendResource appends a Resource of a DeltaDiscoveryResponse.
func (r *Resource) appendResource(out []byte) []byte {
	out = appendText(out, fieldResourceVersion, r.Hash.Version())
	out = appendHead(out, fieldResourceAny, r.sizeAny())
	out = r.appendAny(out)
	return appendText(out, fieldResourceName, r.Name)
}

func (r *Resource) sizeResource() int {
	return sizeText(fieldResourceVersion, r.Hash.Version()) + sizeField(fieldResourceAny, r.sizeAny()) + sizeText(fieldResourceName, r.Name)
}

func (r *Resource) appendAny(out []byte) []byte {
	out = appendText(out, fieldAnyType, r.TypeURL)
	if r.size() == 0 {
		return out
	}
	out = appendHead(out, fieldAnyValue, r.size())
	return r.appendBinary(out)
}

func (r *Resource) sizeAny() int {
	size := sizeText(fieldAnyType, r.TypeURL)
	if r.size() > 0 {
		size += sizeField(fieldAnyValue, r.size())
	}
	return size
}

// appendHead appends the head of a field of a given length.
func appendHead(out []byte, field protowire.Number, length int) []byte {
	out = protowire.AppendTag(out, field, protowire.BytesType)
	return protowire.AppendVarint(out, uint64(length))
}

// appendText appends a text field. As usual in proto, it leaves out an empty text.
func appendText(out []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return out
	}
	return append(appendHead(out, field, len(text)), text...)
}

func sizeField(field protowire.Number, length int) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(length)
}

func sizeText(field protowire.Number, text string) int {
	if text == "" {
		return 0
	}
	return sizeField(field, len(text))
}

// Response has the resources of one type that a stream sends to its proxy. It is immutable.
type Response struct {
	Version string
	Nonce   string // the client names it when it acks or nacks
	*Content
}
