package discovery

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilot-api/pilot-api/diag"
)

// resource is one v3 resource. A route table is spliced from its virtual hosts,
// which are encoded for themselves; any other has all that it is in its shell.
// It is immutable and shared by every view that has the same part.
type resource struct {
	typeURL, name string
	hash          digest
	shell         *fragment
	hosts         []*fragment
	endpoints     string   // key that a cluster asks for, "" for one that has them
	knowing       *knowing // of a table for one client of gRPC, nil otherwise
	origin        diag.Ref
	problems      diag.Interned
	shown         json.RawMessage // to people, where that is not the message; nil where it is

	body brief[[]byte] // of an answer that holds this resource and no other
}

func newResource(typeURL, name string, shell *fragment, hosts ...*fragment) *resource {
	r := &resource{typeURL: typeURL, name: name, hash: shell.hash, shell: shell, hosts: hosts}
	if len(hosts) > 0 {
		h := sha256.New()
		h.Write(shell.hash[:])
		for _, host := range hosts {
			h.Write(host.hash[:])
		}
		h.Sum(r.hash[:0])
	}
	return r
}

// hostsField is virtual_hosts of a RouteConfiguration.
const hostsField = 2

// binary is the encoded message.
func (r *resource) binary() []byte { return r.appendBinary(make([]byte, 0, r.size())) }

// appendBinary splices: of a repeated field, each entry stands for itself.
func (r *resource) appendBinary(out []byte) []byte {
	out = append(out, r.shell.binary...)
	for _, h := range r.hosts {
		out = protowire.AppendTag(out, hostsField, protowire.BytesType)
		out = protowire.AppendBytes(out, h.binary)
	}
	return out
}

// size is that of the encoded message.
func (r *resource) size() int {
	size := len(r.shell.binary)
	for _, h := range r.hosts {
		size += protowire.SizeTag(hostsField) + protowire.SizeBytes(len(h.binary))
	}
	return size
}

// appendJSON appends the resource as an Any in proto JSON.
func (r *resource) appendJSON(out []byte) []byte {
	out = fmt.Appendf(out, `{"@type":%q`, r.typeURL)
	if fields := r.shell.json(); len(fields) > len("{}") {
		out = append(append(out, ','), fields[1:len(fields)-1]...)
	}
	for i, h := range r.hosts {
		if i == 0 {
			out = append(out, `,"virtual_hosts":[`...)
		} else {
			out = append(out, ',')
		}
		out = append(out, h.json()...)
	}
	if len(r.hosts) > 0 {
		out = append(out, ']')
	}
	return append(out, '}')
}

// appendShown is appendJSON for people, who see no keys.
func (r *resource) appendShown(out []byte) []byte {
	if r.shown != nil {
		return append(out, r.shown...)
	}
	return r.appendJSON(out)
}

// sizeJSON is about the length of what appendJSON appends.
func (r *resource) sizeJSON() int {
	size := len(r.typeURL) + len(r.shell.json()) + 50
	for _, h := range r.hosts {
		size += len(h.json()) + 1
	}
	return size
}

// answer holds this resource and no other, for a poll by its name.
func (r *resource) answer() Answer {
	all := []*resource{r}
	version := versionOf([]string{r.name}, all)
	return Answer{Version: version, compose: func() []byte {
		return *r.body.get(func() *[]byte { return body(r.typeURL, version, all) })
	}}
}

// versionOf covers the names that were asked for besides the content, so that an
// equal version means that both are unchanged. The resources must be sorted by
// name.
func versionOf(names []string, resources []*resource) string {
	h := sha256.New()
	for _, n := range names {
		h.Write(binary.AppendUvarint(nil, uint64(len(n))))
		h.Write([]byte(n))
	}
	h.Write([]byte{0}) // No name is empty.
	for _, r := range resources {
		h.Write(r.hash[:])
	}
	return digest(h.Sum(nil)).version()
}

// body is a DiscoveryResponse in proto JSON.
func body(typeURL, version string, resources []*resource) *[]byte {
	head := fmt.Sprintf(`{"version_info":%q,"type_url":%q,"resources":[`, version, typeURL)
	size := len(head) + len("]}")
	for _, r := range resources {
		size += r.sizeJSON()
	}
	out := append(make([]byte, 0, size), head...)
	for i, r := range resources {
		if i > 0 {
			out = append(out, ',')
		}
		out = r.appendJSON(out)
	}
	out = append(out, "]}"...)
	return &out
}
