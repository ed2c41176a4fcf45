package mesh

import (
	"maps"
	"slices"
	"strconv"

	security "istio.io/api/security/v1beta1"

	"github.com/pilot-api/pilot-api/schema"
)

// PeerMode says which connections an instance accepts from its callers.
type PeerMode string

// The modes, as in PeerAuthentication.
const (
	PeerPermissive PeerMode = "PERMISSIVE" // by mutual TLS, or in plain text
	PeerStrict     PeerMode = "STRICT"     // by mutual TLS only
	PeerDisable    PeerMode = "DISABLE"    // as they come
)

// tlsModeLabel and tlsModeMutual are the label of instances that can take mutual TLS, as in
// Istio.
const (
	tlsModeLabel  = "security.istio.io/tlsMode"
	tlsModeMutual = "istio"
)

// PeerPolicy is a PeerAuthentication.
type PeerPolicy struct {
	object   *schema.Object
	Selector Labels
	mode     PeerMode // "" for that of the next wider policy
	ports    map[int]PeerMode
}

// Key returns the key of the object.
func (p *PeerPolicy) Key() schema.Key { return p.object.Key() }

// readPeerPolicy returns nil for an object that cannot be read.
func readPeerPolicy(o *schema.Object) *PeerPolicy {
	spec, err := o.Spec()
	typed, ok := spec.(*security.PeerAuthentication)
	if err != nil || !ok {
		return nil
	}
	out := &PeerPolicy{object: o, Selector: typed.GetSelector().GetMatchLabels(), mode: peerModes[typed.GetMtls().GetMode()]}
	for port, tls := range typed.GetPortLevelMtls() {
		if mode := peerModes[tls.GetMode()]; mode != "" {
			if out.ports == nil {
				out.ports = map[int]PeerMode{}
			}
			out.ports[int(port)] = mode
		}
	}
	return out
}

var peerModes = map[security.PeerAuthentication_MutualTLS_Mode]PeerMode{
	security.PeerAuthentication_MutualTLS_PERMISSIVE: PeerPermissive,
	security.PeerAuthentication_MutualTLS_STRICT:     PeerStrict,
	security.PeerAuthentication_MutualTLS_DISABLE:    PeerDisable,
}

// peerPolicies are all PeerAuthentications by namespace, each namespace from the oldest to the
// youngest. One that cannot be read is closed: it makes its workloads STRICT.
type peerPolicies map[string][]*PeerPolicy

func (all peerPolicies) replace(c schema.Change) {
	key := c.Key()
	list := slices.DeleteFunc(slices.Clone(all[key.Namespace]), func(p *PeerPolicy) bool { return p.Key() == key })
	if c.After != nil {
		policy := readPeerPolicy(c.After)
		if policy == nil {
			policy = &PeerPolicy{object: c.After, mode: PeerStrict}
		}
		list = append(list, policy)
		slices.SortFunc(list, func(a, b *PeerPolicy) int { return compareAge(a.object, b.object) })
	}
	if all[key.Namespace] = list; len(list) == 0 {
		delete(all, key.Namespace)
	}
}

// first returns the oldest policy of a namespace that selects a workload with some labels or,
// if these are nil, the oldest one without a selector.
func (all peerPolicies) first(namespace string, labels Labels) *PeerPolicy {
	for _, p := range all[namespace] {
		if labels == nil && len(p.Selector) == 0 || labels != nil && len(p.Selector) > 0 && p.Selector.SubsetOf(labels) {
			return p
		}
	}
	return nil
}

// PeerModes are the modes of the ports of a workload.
type PeerModes struct {
	own *PeerPolicy // selects the workload; nil for none
	// mode is that of ports for which own says nothing. by decides it; nil for the default.
	mode PeerMode
	by   *PeerPolicy
}

// At returns the mode of a port, and the policy that decides it; nil for the default.
func (m PeerModes) At(port int) (PeerMode, *PeerPolicy) {
	if m.own != nil && m.own.ports[port] != "" {
		return m.own.ports[port], m.own
	}
	return m.mode, m.by
}

// appendKey appends what distinguishes the modes from others, and nothing for the default.
func (m PeerModes) appendKey(key []byte) []byte {
	if m.by != nil {
		key = appendText(append(appendText(key, string(m.mode)), '!'), m.by.Key().String())
	}
	if m.own == nil || len(m.own.ports) == 0 {
		return key
	}
	key = appendText(key, m.own.Key().String())
	for _, port := range slices.Sorted(maps.Keys(m.own.ports)) {
		key = appendText(strconv.AppendInt(key, int64(port), 10), string(m.own.ports[port]))
	}
	return key
}

// Equal reports whether both are the same for every port.
func (m PeerModes) Equal(other PeerModes) bool {
	return string(m.appendKey(nil)) == string(other.appendKey(nil))
}

// of returns the modes of a workload.
func (all peerPolicies) of(root, namespace string, labels Labels) PeerModes {
	if labels == nil {
		labels = Labels{}
	}
	out := PeerModes{own: all.first(namespace, labels), mode: PeerPermissive}
	for _, p := range []*PeerPolicy{out.own, all.first(namespace, nil), all.first(root, nil)} {
		if p != nil && p.mode != "" {
			out.mode, out.by = p.mode, p
			break
		}
	}
	return out
}

// replacePeerPolicy replaces a PeerAuthentication, and touches the entries whose instances it
// may concern.
func (r *registry) replacePeerPolicy(c schema.Change, t *touched) {
	r.peers.replace(c)
	namespace := c.Key().Namespace
	for _, e := range r.entries {
		if e.spec != nil && (namespace == r.settings.RootNamespace || e.Meta.Namespace == namespace) {
			t.touch(e)
		}
	}
}

// secure sets how callers reach an instance, and how it takes their connections.
func (r *registry) secure(i *Instance) {
	i.Peer = r.peers.of(r.settings.RootNamespace, i.Origin.Namespace, i.Labels)
	mode, _ := i.Peer.At(i.EndpointPort)
	i.MutualTLS = takesMutualTLS(i.Labels) && mode != PeerDisable && (mode == PeerStrict || !i.Port.ServerFirst)
}

// takesMutualTLS reports whether labels say that an instance can take mutual TLS.
func takesMutualTLS(labels Labels) bool { return labels[tlsModeLabel] == tlsModeMutual }
