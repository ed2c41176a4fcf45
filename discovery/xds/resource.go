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

// Resource is one v3 resource. A route table is spliced from its virtual hosts, which are
// encoded separately. Any other resource is complete in its shell. It is immutable, and all
// views that have the same part share it.
type Resource struct {
	TypeURL, Name string
	Hash          Digest
	Shell         *Fragment
	Hosts         []*Fragment
	Endpoints     string   // key by which a cluster asks for its endpoints, "" if they are inline
	Empty         bool     // of a set of endpoints: it has no instances
	knowing       *knowing // of a table for a client of gRPC, nil otherwise
	origin        diag.Ref
	Problems      diag.Interned
	shown         json.RawMessage // the form for people if it is not the message; nil if it is

	body cached.Brief[[]byte] // of the answer that has only this resource
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

// hostsField is the field virtual_hosts of a RouteConfiguration.
const hostsField = 2

// Binary returns the encoded message.
func (r *Resource) Binary() []byte { return r.appendBinary(make([]byte, 0, r.size())) }

// appendBinary splices the message. Each entry of a repeated field is encoded by itself.
func (r *Resource) appendBinary(out []byte) []byte {
	out = append(out, r.Shell.Binary...)
	for _, h := range r.Hosts {
		out = protowire.AppendTag(out, hostsField, protowire.BytesType)
		out = protowire.AppendBytes(out, h.Binary)
	}
	return out
}

// size returns the length of the encoded message.
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

// AppendShown is AppendJSON for people: it leaves out keys.
func (r *Resource) AppendShown(out []byte) []byte {
	if r.shown != nil {
		return append(out, r.shown...)
	}
	return r.appendJSON(out)
}

// sizeJSON estimates the length of what appendJSON appends.
func (r *Resource) sizeJSON() int {
	size := len(r.TypeURL) + len(r.Shell.JSON()) + 50
	for _, h := range r.Hosts {
		size += len(h.JSON()) + 1
	}
	return size
}

// Answer returns an answer with only this resource, for a poll by its name.
func (r *Resource) Answer() Answer {
	all := []*Resource{r}
	version := VersionOf([]string{r.Name}, all)
	return Answer{Version: version, Compose: func() []byte {
		return *r.body.Get(func() *[]byte { return body(r.TypeURL, version, all) })
	}}
}

// VersionOf returns the version of an answer. It covers the requested names and the
// content, so an equal version means that both are unchanged. The resources must be sorted
// by name.
func VersionOf(names []string, resources []*Resource) string {
	h := sha256.New()
	for _, n := range names {
		h.Write(binary.AppendUvarint(nil, uint64(len(n))))
		h.Write([]byte(n))
	}
	h.Write([]byte{0}) // No resource has an empty name.
	for _, r := range resources {
		h.Write(r.Hash[:])
	}
	return Digest(h.Sum(nil)).Version()
}

// body returns a DiscoveryResponse in proto JSON.
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

// intern interns problems of a part. Problems without a code get one when a configuration
// gathers them (diag.Interned.AddTo).
func intern(problems ...diag.Problem) diag.Interned { return diag.Intern(problems, "") }
