package discovery

import "google.golang.org/protobuf/encoding/protowire"

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
	out := appendText(make([]byte, 0, r.size()), fieldVersion, r.version)
	for _, c := range r.resources {
		out = appendHead(out, fieldResources, r.sizeOf(c))
		if r.delta {
			out = c.appendResource(out)
		} else {
			out = c.appendAny(out)
		}
	}
	out = appendText(out, fieldTypeURL, r.TypeURL)
	out = appendText(out, fieldNonce, r.nonce)
	for _, name := range r.removed {
		out = appendText(out, fieldRemoved, name)
	}
	return out
}

func (r *Response) size() int {
	size := sizeText(fieldVersion, r.version) + sizeText(fieldTypeURL, r.TypeURL) + sizeText(fieldNonce, r.nonce)
	for _, c := range r.resources {
		size += sizeField(fieldResources, r.sizeOf(c))
	}
	for _, name := range r.removed {
		size += sizeText(fieldRemoved, name)
	}
	return size
}

func (r *Response) sizeOf(c *resource) int {
	if r.delta {
		return c.sizeResource()
	}
	return c.sizeAny()
}

// appendResource appends a Resource of a DeltaDiscoveryResponse.
func (r *resource) appendResource(out []byte) []byte {
	out = appendText(out, fieldResourceVersion, r.hash.version())
	out = appendHead(out, fieldResourceAny, r.sizeAny())
	out = r.appendAny(out)
	return appendText(out, fieldResourceName, r.name)
}

func (r *resource) sizeResource() int {
	return sizeText(fieldResourceVersion, r.hash.version()) + sizeField(fieldResourceAny, r.sizeAny()) + sizeText(fieldResourceName, r.name)
}

func (r *resource) appendAny(out []byte) []byte {
	out = appendText(out, fieldAnyType, r.typeURL)
	if r.size() == 0 {
		return out
	}
	out = appendHead(out, fieldAnyValue, r.size())
	return r.appendBinary(out)
}

func (r *resource) sizeAny() int {
	size := sizeText(fieldAnyType, r.typeURL)
	if r.size() > 0 {
		size += sizeField(fieldAnyValue, r.size())
	}
	return size
}

// appendHead begins a field of a length.
func appendHead(out []byte, field protowire.Number, length int) []byte {
	out = protowire.AppendTag(out, field, protowire.BytesType)
	return protowire.AppendVarint(out, uint64(length))
}

// appendText leaves an empty text out, as is usual.
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
