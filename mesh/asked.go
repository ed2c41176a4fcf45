package mesh

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/pilot-api/pilot-api/schema"
)

// Label is a label of a workload.
type Label struct{ Name, Value string }

// askedLabel is a label that an object selects. Proxies of the role that have it
// may get a different configuration than those without it.
type askedLabel struct {
	role      Role
	namespace string // of the proxies; "" for any
	Label
}

func (l askedLabel) key() string {
	key := appendText(nil, string(l.role))
	key = appendText(key, l.namespace)
	key = appendText(key, l.Name)
	return string(appendText(key, l.Value))
}

// asked counts how often objects select each label. Like domains, it bounds the
// effect of what nodes state.
type asked = table[int]

// askedAfter returns the selected labels of a snapshot that follows from before by
// changes; before may be nil. It also returns the labels that are now selected for
// the first time, or no longer selected.
func (s *Snapshot) askedAfter(before *Snapshot, changes []schema.Change) (asked, []Label) {
	times := map[askedLabel]int{}
	for _, c := range changes {
		askedBy(c.Before, func(l askedLabel) { times[l]-- })
		askedBy(c.After, func(l askedLabel) { times[l]++ })
	}
	var known asked
	if before != nil {
		known = before.asked
	}
	if len(times) == 0 {
		return known, nil
	}
	d := known.draft()
	var turned []Label
	for l, n := range times {
		was := d.get(l.key())
		if was+n > 0 {
			d.set(l.key(), was+n)
		} else if was > 0 {
			d.remove(l.key())
		}
		if (was > 0) != (was+n > 0) {
			turned = append(turned, l.Label)
		}
	}
	return d.done(), turned
}

// askedBy calls ask for each label that an object selects. The object may be nil.
func askedBy(o *schema.Object, ask func(askedLabel)) {
	if o == nil {
		return
	}
	spec, err := o.Spec()
	if err != nil {
		return
	}
	all := func(role Role, namespace string, labels Labels) {
		for name, value := range labels {
			ask(askedLabel{role, namespace, Label{name, value}})
		}
	}
	switch spec := spec.(type) {
	case *networking.Gateway:
		all(Router, "", spec.GetSelector())
	case *networking.Sidecar:
		all(Sidecar, o.Meta.Namespace, spec.GetWorkloadSelector().GetLabels())
	case *networking.DestinationRule:
		for _, role := range []Role{Sidecar, Router, Ingress} {
			all(role, o.Meta.Namespace, spec.GetWorkloadSelector().GetMatchLabels())
		}
	case *security.AuthorizationPolicy:
		// That of any namespace, because a policy of the root namespace is for all, and the
		// root namespace is a setting.
		for _, role := range []Role{Sidecar, Router, Ingress} {
			all(role, "", spec.GetSelector().GetMatchLabels())
		}
	case *security.RequestAuthentication:
		for _, role := range []Role{Sidecar, Router, Ingress} {
			all(role, "", spec.GetSelector().GetMatchLabels()) // As for an AuthorizationPolicy.
		}
	case *networking.VirtualService:
		for source := range sources(spec) {
			all(Sidecar, source.GetSourceNamespace(), source.GetSourceLabels())
			if atGateways(spec) {
				all(Router, source.GetSourceNamespace(), source.GetSourceLabels())
			}
		}
	}
}

// atGateways reports whether routers may follow a VirtualService: through a
// Gateway, or through another VirtualService that delegates to it.
func atGateways(vs *networking.VirtualService) bool {
	return len(vs.GetHosts()) == 0 || slices.ContainsFunc(vs.GetGateways(), func(name string) bool { return name != "mesh" })
}

// source is a match that may be limited to some callers.
type source interface {
	GetSourceNamespace() string
	GetSourceLabels() map[string]string
}

func sources(vs *networking.VirtualService) func(yield func(source) bool) {
	return func(yield func(source) bool) {
		for _, r := range vs.GetHttp() {
			for _, m := range r.GetMatch() {
				if !yield(m) {
					return
				}
			}
		}
		for _, r := range vs.GetTls() {
			for _, m := range r.GetMatch() {
				if !yield(m) {
					return
				}
			}
		}
		for _, r := range vs.GetTcp() {
			for _, m := range r.GetMatch() {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// LabelsSince returns the labels that objects select now but not in an earlier
// snapshot, or the other way round. It returns false if s was not made directly
// from that one.
func (s *Snapshot) LabelsSince(before *Snapshot) ([]Label, bool) {
	return s.turned, before != nil && s.after == before.id
}

// asks returns those of the labels that may affect proxies of a role in a
// namespace.
func (s *Snapshot) asks(role Role, namespace string, labels Labels) Labels {
	var out Labels
	for name, value := range labels {
		of := Label{name, value}
		if s.asked.get(askedLabel{role, "", of}.key()) > 0 || namespace != "" && s.asked.get(askedLabel{role, namespace, of}.key()) > 0 {
			if out == nil {
				out = Labels{}
			}
			out[name] = value
		}
	}
	return out
}
