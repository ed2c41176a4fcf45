package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/security/identity"
)

// Hosts knows which ServiceEntry declares which host. The zero Hosts knows none. It is safe
// for concurrent use.
type Hosts struct {
	mu    sync.RWMutex
	byKey map[schema.Key][]string
	// owners has the ServiceEntries of each host.
	owners map[string][]schema.Key
}

// Put adds or replaces a ServiceEntry. It ignores objects of other kinds.
func (h *Hosts) Put(o *schema.Object) {
	if o.Kind.Kind != "ServiceEntry" {
		return
	}
	spec, err := o.Spec()
	if err != nil {
		return
	}
	entry, ok := spec.(*networking.ServiceEntry)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deleteLocked(o.Key()) // Under the same lock: a host is never without its owner.
	if h.byKey == nil {
		h.byKey, h.owners = map[schema.Key][]string{}, map[string][]schema.Key{}
	}
	hosts := make([]string, len(entry.GetHosts()))
	for i, host := range entry.GetHosts() {
		hosts[i] = canonical(host)
	}
	h.byKey[o.Key()] = hosts
	for _, host := range hosts {
		h.owners[host] = append(h.owners[host], o.Key())
	}
}

// canonical returns a host in the form in which hosts are compared.
func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// Delete removes a ServiceEntry.
func (h *Hosts) Delete(key schema.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deleteLocked(key)
}

func (h *Hosts) deleteLocked(key schema.Key) {
	for _, host := range h.byKey[key] {
		left := slices.DeleteFunc(h.owners[host], func(k schema.Key) bool { return k == key })
		if h.owners[host] = left; len(left) == 0 {
			delete(h.owners, host)
		}
	}
	delete(h.byKey, key)
}

// of returns the ServiceEntries that declare a host, or hosts that a wildcard covers. If there
// are none, it returns those of the most precise wildcard that covers the host.
func (h *Hosts) of(host string) []schema.Key {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if all := h.declared(host); len(all) > 0 {
		return all
	}
	rest := strings.TrimPrefix(host, "*.")
	if rest != host {
		rest = "." + rest // A wildcard may be part of a wider one.
	}
	for {
		at := strings.IndexByte(rest, '.')
		if at < 0 {
			return slices.Clone(h.owners["*"])
		}
		if keys := h.owners["*"+rest[at:]]; len(keys) > 0 {
			return slices.Clone(keys)
		}
		rest = rest[at+1:]
	}
}

// declared returns the ServiceEntries of a host, or of all hosts that a wildcard covers.
func (h *Hosts) declared(host string) (all []schema.Key) {
	suffix, isWildcard := strings.CutPrefix(host, "*")
	if !isWildcard {
		return slices.Clone(h.owners[host])
	}
	for one, keys := range h.owners {
		if strings.HasSuffix(one, suffix) {
			all = append(all, keys...)
		}
	}
	return all
}

// checkHosts returns an error if an object has rules for a host that only other namespaces
// declare, or names their Gateways, and the identity of ctx has no right to that. The right
// to update the ServiceEntry or Gateway is enough.
func (g *Gate) checkHosts(ctx context.Context, before, after *schema.Object) error {
	if before != nil && before.SameSpec(after) || identity.Of(ctx).In(identity.Masters) {
		return nil
	}
	spec, err := after.Spec()
	if err != nil {
		return fmt.Errorf("%s: %w", after.Key(), err)
	}
	namespace := after.Meta.Namespace
	for _, host := range hostsOf(spec) {
		owners := g.owners(host, namespace)
		if slices.ContainsFunc(owners, func(k schema.Key) bool { return k.Namespace == namespace }) && !strings.HasPrefix(host, "*") {
			continue // The namespace declares it, too.
		}
		for _, owner := range owners {
			if owner.Namespace != namespace && !g.may(ctx, authz.VerbRoute, owner) {
				if !g.opts.Guard.Allows(ctx, authz.On("get", owner)) {
					owner.Name = "" // The client does not know it.
				}
				return authz.Forbidden(identity.Of(ctx), authz.On(authz.VerbRoute, owner),
					fmt.Sprintf("a rule for the host %s, which is of that namespace, takes this verb or update on its ServiceEntry", host))
			}
		}
	}
	for _, gateway := range gatewaysOf(spec) {
		of, name, qualified := strings.Cut(gateway, "/")
		if !qualified || of == namespace || of == "." {
			continue
		}
		if key := (schema.Key{Kind: "Gateway", Namespace: of, Name: name}); !g.may(ctx, authz.VerbAttach, key) {
			return authz.Forbidden(identity.Of(ctx), authz.On(authz.VerbAttach, key), "a rule that names the Gateway takes this verb or update on it")
		}
	}
	return nil
}

// may reports whether the identity of ctx has a verb on an object, or may update it.
func (g *Gate) may(ctx context.Context, verb string, key schema.Key) bool {
	return g.opts.Guard.Allows(ctx, authz.On(verb, key)) || g.opts.Guard.Allows(ctx, authz.On("update", key))
}

// owners returns the ServiceEntries that declare a host as a rule of a namespace names it: in
// full, or without a part of its domain.
func (g *Gate) owners(host, namespace string) (all []schema.Key) {
	services := ".svc." + g.opts.Domain
	names := []string{host}
	if !strings.HasPrefix(host, "*") {
		names = append(names, host+"."+namespace+services, host+services, host+"."+g.opts.Domain)
	}
	for _, name := range names {
		all = append(all, g.opts.Hosts.of(canonical(name))...)
	}
	return all
}

// hostsOf returns the hosts that a rule is for.
func hostsOf(spec any) []string {
	service := func(s *schema.IstioService) []string {
		if s == nil {
			return nil
		}
		if s.Service != "" {
			return []string{s.Service}
		}
		host := s.Name
		if s.Namespace != "" {
			host += "." + s.Namespace
		}
		if s.Domain != "" {
			host += "." + s.Domain
		}
		return []string{host}
	}
	switch s := spec.(type) {
	case *networking.VirtualService:
		return s.GetHosts()
	case *networking.DestinationRule:
		return []string{s.GetHost()}
	case *schema.RouteRule:
		return service(s.Destination)
	case *schema.DestinationPolicy:
		return service(s.Destination)
	case *schema.EgressRule:
		return service(s.Destination)
	}
	return nil
}

// gatewaysOf returns the Gateways that a rule names.
func gatewaysOf(spec any) (names []string) {
	s, ok := spec.(*networking.VirtualService)
	if !ok {
		return nil
	}
	names = slices.Clone(s.GetGateways())
	for _, r := range s.GetHttp() {
		for _, m := range r.GetMatch() {
			names = append(names, m.GetGateways()...)
		}
	}
	for _, r := range s.GetTls() {
		for _, m := range r.GetMatch() {
			names = append(names, m.GetGateways()...)
		}
	}
	for _, r := range s.GetTcp() {
		for _, m := range r.GetMatch() {
			names = append(names, m.GetGateways()...)
		}
	}
	return names
}
