package stream

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// MaxSecretStreamsOfProxy bounds the streams of secrets of one proxy. An Envoy has one for
// each secret that its bootstrap takes from a source of its own.
const MaxSecretStreamsOfProxy = 128

// NewSecrets is New for a stream that has secrets and nothing else. Its proxy gets the rest
// of its configuration by another stream or by polls, and the stream does not count as a
// proxy (AddTo).
func NewSecrets(shared *Shared, proxy Proxy, variant Variant) *Stream {
	st := New(shared, proxy, variant)
	st.onlySecrets = true
	return st
}

// nextSecrets is next for a stream of secrets.
func (st *Stream) nextSecrets(target *compiled.Streamed) *xds.Response {
	secrets := compiled.At{Set: st.secretsOf(target.V3Answers), View: target.View}
	st.secrets.meet(secrets, secrets.Named)
	return st.dueOf(&st.secrets, secrets, secrets.Named)
}

// AddTo adds the state of a stream of secrets to that of its proxy, which runs a revision
// only if it has the secrets of that revision too.
func (st *Stream) AddTo(one *feedback.ProxySyncState, r feedback.SyncVisitor) {
	own := st.SyncState(r)
	if own.View == nil {
		return
	}
	one.State = feedback.Worse(one.State, own.State)
	one.Revision = min(one.Revision, own.Revision)
	if one.At == one.View {
		one.At = own.At
	}
}

// WorkloadSecrets are secrets that only the proxies of one workload get, such as its
// certificate. They are no part of a configuration. Each has a name without a slash: other
// secrets are named by namespace and name. The methods are safe for concurrent use. They may
// be called under the lock of a stream, so they must not wait.
type WorkloadSecrets interface {
	// Secret returns the present secret of a name, or nil if there is none. The result is the
	// same pointer until the secret changes, and never changes itself.
	Secret(name string) *ir.Secret
	// Watch calls changed after each change, until stop is called. changed does not wait.
	Watch(changed func()) (stop func())
}

// ownSecrets are the workload's secrets that the proxy was last found to ask for.
type ownSecrets struct {
	source WorkloadSecrets // nil for none
	stop   func()
	beside *xds.Set // the secrets of the configuration
	all    []*ir.Secret
	merged *xds.Set
}

// AddSecrets lets the proxy ask for the secrets of its workload, private keys included. The
// caller has verified that the proxy is of that workload. Call AddSecrets before the first
// Receive.
func (st *Stream) AddSecrets(source WorkloadSecrets) {
	st.own.source, st.own.stop = source, source.Watch(st.Awake)
}

// withOwn returns secrets of the configuration together with the secrets of the workload
// that the proxy asks for.
func (st *Stream) withOwn(set *xds.Set, view *compiled.View) *xds.Set {
	o := &st.own
	if o.source == nil || set == nil {
		return set
	}
	var all []*ir.Secret
	for name := range st.secrets.named.extra {
		if strings.Contains(name, "/") {
			continue
		}
		if s := o.source.Secret(name); s != nil {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return set
	}
	slices.SortFunc(all, func(a, b *ir.Secret) int { return strings.Compare(a.Name, b.Name) })
	if o.beside != set || !slices.Equal(o.all, all) {
		o.beside, o.all, o.merged = set, all, view.SecretsBeside(set, all)
	}
	return o.merged
}
