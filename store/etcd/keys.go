package etcd

import (
	"strings"

	"go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd/register"
)

// DefaultPrefix is the prefix of pilot-api's keys in an etcd that is shared with
// others.
const DefaultPrefix = "/pilot-api"

// layout builds keys:
//
//	<prefix>/objects/<group>/<plural>/<namespace>/<name>
//
// Every scope is one range: all objects have keys that begin with <prefix>/objects/,
// and each further part narrows the range. No part contains a slash. One scope is no
// range, a namespace of all kinds: all kinds are read and filtered.
//
// <prefix>/objects itself is the head (see clock.go), where the range of all changes
// begins. Records of earlier states are outside that range (see history.go):
//
//	<prefix>/history/<group>/<plural>/<namespace>/<name>/<transaction>
//	<prefix>/history-floor
//	<prefix>/history-kept
//
// If the store keeps statuses, the last status revision is inside the range, and all
// statuses are outside it, in pages (see statuses.go):
//
//	<prefix>/objects-statuses
//	<prefix>/status-pages/<page>
//
// Two more keys hold the settings of the mesh in a snapshot (see snapshot.go) and mark
// an etcd that is being filled (see migrate.go):
//
//	<prefix>/settings
//	<prefix>/migration
//
// The servers that share the store are in a register of their own (package register). They also
// share keys (shared).
type layout struct {
	head, objects, history, floor, kept, settings, migration string

	statuses, statusPages string
}

// AuthorityName is the name under the prefix of the certificate authority of the mesh.
const AuthorityName = "ca"

// RevokedTokensName is the name under the prefix of the list of revoked tokens.
const RevokedTokensName = "revoked-tokens"

// shared returns the keys that servers share and that a move must not lose: tokens and
// certificates that they have issued must go on to count, and revoked ones must not.
func (l layout) shared() []string {
	root := strings.TrimSuffix(l.settings, "settings")
	return []string{root + register.TokenKey, root + AuthorityName, root + RevokedTokensName}
}

func newLayout(prefix string) layout {
	root := strings.TrimRight(prefix, "/")
	return layout{
		head: root + "/objects", objects: root + "/objects/",
		history: root + "/history/", floor: root + "/history-floor", kept: root + "/history-kept",
		settings: root + "/settings", migration: root + "/migration",
		statuses: root + "/objects-statuses", statusPages: root + "/status-pages/",
	}
}

// changes returns the range of the head, the status revision and all objects. A few other
// names would sort between them, but nothing here uses those.
func (l layout) changes() (string, clientv3.OpOption) {
	return l.head, clientv3.WithRange(clientv3.GetPrefixRangeEnd(l.objects))
}

func (l layout) key(kind *schema.Kind, namespace, name string) string {
	return l.kind(kind) + namespace + "/" + name
}

func (l layout) kind(kind *schema.Kind) string {
	return l.objects + kind.StoredGroup() + "/" + kind.Plural + "/"
}

// of returns the key of an object; ok is false for an unknown kind.
func (l layout) of(key schema.Key) (string, bool) {
	kind, ok := schema.KindByName(key.Kind)
	if !ok {
		return "", false
	}
	return l.key(kind, key.Namespace, key.Name), true
}

// parse is the inverse of of; ok is false if name is no key of an object.
func (l layout) parse(name string) (key schema.Key, ok bool) {
	parts := strings.Split(strings.TrimPrefix(name, l.objects), "/")
	if len(parts) != 4 {
		return schema.Key{}, false
	}
	for _, kind := range schema.Kinds() {
		if kind.StoredGroup() == parts[0] && kind.Plural == parts[1] {
			return schema.Key{Kind: kind.Kind, Namespace: parts[2], Name: parts[3]}, true
		}
	}
	return schema.Key{}, false
}

// span is a range of keys, including from and excluding to.
type span struct{ from, to string }

// span returns the range of a scope.
func (l layout) span(scope store.Scope) span {
	prefix := l.objects
	switch {
	case scope.Kind == nil:
	case scope.Namespace == "":
		prefix = l.kind(scope.Kind)
	case scope.Name == "":
		prefix = l.kind(scope.Kind) + scope.Namespace + "/"
	default:
		name := l.key(scope.Kind, scope.Namespace, scope.Name)
		return span{name, name + "\x00"}
	}
	return span{prefix, clientv3.GetPrefixRangeEnd(prefix)}
}

// absent returns the condition that a key does not exist.
func (layout) absent(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
}

// after returns the part of a range after a key.
func (s span) after(key string) span { return span{min(max(s.from, key+"\x00"), s.to), s.to} }
