package xds

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
)

// Resource is one v3 resource. A route table is spliced from its virtual hosts,
// which are encoded for themselves; any other has all that it is in its shell.
// It is immutable and shared by every view that has the same part.
type Resource struct {
	TypeURL, Name string
	Hash          Digest
	Shell         *Fragment
	Hosts         []*Fragment
	Endpoints     string   // key that a cluster asks for, "" for one that has them
	knowing       *knowing // of a table for one client of gRPC, nil otherwise
	origin        diag.Ref
	Problems      diag.Interned
	shown         json.RawMessage // to people, where that is not the message; nil where it is

	body cached.Brief[[]byte] // of an answer that holds this resource and no other
}

func newResource(typeURL, name string, shell *Fragment, hosts ...*Fragment) *Resource {
	r := &Resource{TypeURL: typeURL, Name: name, Hash: shell.hash, Shell: shell, Hosts: hosts}
	if len(hosts) > 0 {
		h := sha256.New()
		h.Write(shell.hash[:])
		for _, host := range hosts {
			h.Write(host.hash[:])
		}
		h.Sum(r.Hash[:0])
	}
	return r
}

// hostsField is virtual_hosts of a RouteConfiguration.
const hostsField = 2

// Binary is the encoded message.
func (r *Resource) Binary() []byte { return r.appendBinary(make([]byte, 0, r.size())) }

// appendBinary splices: of a repeated field, each entry stands for itself.
func (r *Resource) appendBinary(out []byte) []byte {
	out = append(out, r.Shell.Binary...)
	for _, h := range r.Hosts {
		out = protowire.AppendTag(out, hostsField, protowire.BytesType)
		out = protowire.AppendBytes(out, h.Binary)
	}
	return out
}

// size is that of the encoded message.
func (r *Resource) size() int {
	size := len(r.Shell.Binary)
	for _, h := range r.Hosts {
		size += protowire.SizeTag(hostsField) + protowire.SizeBytes(len(h.Binary))
	}
	return size
}

// appendJSON appends the resource as an Any in proto JSON.
func (r *Resource) appendJSON(out []byte) []byte {
	out = fmt.Appendf(out, `{"@type":%q`, r.TypeURL)
	if fields := r.Shell.JSON(); len(fields) > len("{}") {
		out = append(append(out, ','), fields[1:len(fields)-1]...)
	}
	for i, h := range r.Hosts {
		if i == 0 {
			out = append(out, `,"virtual_hosts":[`...)
		} else {
			out = append(out, ',')
		}
		out = append(out, h.JSON()...)
	}
	if len(r.Hosts) > 0 {
		out = append(out, ']')
	}
	return append(out, '}')
}

// AppendShown is AppendJSON for people: keys are left out.
func (r *Resource) AppendShown(out []byte) []byte {
	if r.shown != nil {
		return append(out, r.shown...)
	}
	return r.appendJSON(out)
}

// sizeJSON is about the length of what appendJSON appends.
func (r *Resource) sizeJSON() int {
	size := len(r.TypeURL) + len(r.Shell.JSON()) + 50
	for _, h := range r.Hosts {
		size += len(h.JSON()) + 1
	}
	return size
}

// Answer holds this resource and no other, for a poll by its name.
func (r *Resource) Answer() Answer {
	all := []*Resource{r}
	version := VersionOf([]string{r.Name}, all)
	return Answer{Version: version, Compose: func() []byte {
		return *r.body.Get(func() *[]byte { return body(r.TypeURL, version, all) })
	}}
}

// VersionOf covers the names that were asked for besides the content, so that an
// equal version means that both are unchanged. The resources must be sorted by
// name.
func VersionOf(names []string, resources []*Resource) string {
	h := sha256.New()
	for _, n := range names {
		h.Write(binary.AppendUvarint(nil, uint64(len(n))))
		h.Write([]byte(n))
	}
	h.Write([]byte{0}) // No name is empty.
	for _, r := range resources {
		h.Write(r.Hash[:])
	}
	return Digest(h.Sum(nil)).Version()
}

// body is a DiscoveryResponse in proto JSON.
func body(typeURL, version string, resources []*Resource) *[]byte {
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

// intern interns problems of a part. What is lost in a version of the API gets its code
// when a configuration gathers them (diag.Interned.AddTo).
func intern(problems ...diag.Problem) diag.Interned { return diag.Intern(problems, "") }
