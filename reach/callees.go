package reach

import (
	"fmt"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// callee is a port of a service.
type callee struct {
	service *mesh.Service
	port    *mesh.Port
	classes []*class
}

// class has the instances of a callee that treat callers alike.
type class struct {
	is        presence
	v1        bool
	proxyless bool
	mutualTLS bool // callers use it
	network   string
	// listener is that of the proxy; nil if it has none for the port, or there is no proxy.
	listener *ir.Listener
	// signature is equal for listeners that give the same answers. address is set if they depend on it.
	signature int
	address   string
}

type classKey struct {
	is            presence
	v1, proxyless bool
	mutualTLS     bool
	port          int
	traits        string
	network       string
	address       string
}

// callees returns the ports of the selected services.
func (a *asked) callees() []*callee {
	var out []*callee
	for _, svc := range a.snapshot.Services {
		if svc.External && a.to.host == "" || svc.Egress || !a.may(svc.Namespace) || !a.to.takes(svc, a.settings.Domain) {
			continue
		}
		byPort := map[*mesh.Port]*callee{}
		for _, port := range svc.Ports {
			byPort[port] = &callee{service: svc, port: port}
			out = append(out, byPort[port])
		}
		if svc.External {
			continue
		}
		known := map[classKey]bool{}
		for _, i := range svc.Instances {
			if of := byPort[i.Port]; of != nil {
				a.addClass(of, i, known)
			}
		}
	}
	return out
}

// addClass adds the class of an instance, unless it is known.
func (a *asked) addClass(to *callee, i *mesh.Instance, known map[classKey]bool) {
	proxy, is := a.fleet.beside(i, a.settings)
	key := classKey{is: is, v1: proxy.V1, proxyless: proxy.Proxyless, mutualTLS: i.MutualTLS, port: i.EndpointPort, network: i.Network}
	one := &class{is: is, v1: proxy.V1, proxyless: proxy.Proxyless, mutualTLS: i.MutualTLS, network: i.Network}
	if is != absent && !proxy.Proxyless {
		traits := a.traits(proxy)
		key.traits = traits.key
		if one.listener = a.inbound(traits)[i.EndpointPort]; one.listener != nil {
			one.signature = a.signature(one.listener)
			if a.byAddress[one.signature] {
				one.address = i.Address
			}
		}
	}
	key.address = one.address
	if !known[key] {
		known[key] = true
		to.classes = append(to.classes, one)
		a.shared[one.signature]++
	}
}

// inbound returns the listeners of proxies with some traits, by port.
func (a *asked) inbound(of keyedTraits) map[int]*ir.Listener {
	byPort, ok := a.listeners[of.key]
	if !ok {
		byPort = map[int]*ir.Listener{}
		for _, l := range a.questions.Inbound(of.Traits) {
			if l.Direction == ir.Inbound && byPort[l.Port] == nil {
				byPort[l.Port] = l
			}
		}
		a.listeners[of.key] = byPort
	}
	return byPort
}

// signature returns a number for what decides about calls to a listener.
func (a *asked) signature(l *ir.Listener) int {
	var text strings.Builder
	byAddress := false
	fmt.Fprintf(&text, "%d\n", l.Port)
	chains := l.Chains
	if len(chains) == 0 {
		chains = []*ir.FilterChain{{HTTP: l.HTTP, TCP: l.TCP, TLS: l.TLS}}
	}
	for _, c := range chains {
		fmt.Fprintf(&text, "%s %v %v\n", c.Transport, c.ALPN, c.TLS != nil)
		var access *ir.Access
		switch {
		case c.HTTP != nil:
			access = c.HTTP.Access
			fmt.Fprintf(&text, "http %v\n", c.HTTP.Tokens != nil)
			if c.HTTP.Tokens != nil {
				for i := range c.HTTP.Tokens.Rules {
					fmt.Fprintf(&text, "%v", c.HTTP.Tokens.Rules[i].Keys != "")
				}
			}
		case c.TCP != nil:
			access = c.TCP.Access
			closed := len(c.TCP.Routes) > 0 && len(c.TCP.Routes[0].Clusters) > 0 && c.TCP.Routes[0].Clusters[0].Name == ir.Nobody
			fmt.Fprintf(&text, "tcp %v\n", closed)
		}
		byAddress = a.describe(&text, access) || byAddress
	}
	for _, ref := range l.Origins {
		if ref.Kind == "PeerAuthentication" || ref.Kind == "AuthorizationPolicy" {
			fmt.Fprintln(&text, ref)
		}
	}
	number, ok := a.signatures[text.String()]
	if !ok {
		number = len(a.signatures)
		a.signatures[text.String()] = number
		a.byAddress[number] = byAddress
	}
	return number
}

// describe writes what distinguishes policies, and reports whether they test the address that is
// called. A name of a policy stands for its rule: a snapshot has one of each name.
func (a *asked) describe(to *strings.Builder, access *ir.Access) (byAddress bool) {
	if access == nil {
		return false
	}
	for _, step := range access.Steps {
		fmt.Fprintf(to, "%s %v\n", step.Action, step.DryRun)
		for i := range step.Policies {
			fmt.Fprintln(to, step.Policies[i].Name)
			step.Policies[i].Operation.EachTest(func(t *ir.Test) { byAddress = byAddress || t.Attribute == ir.AttrDestinationAddress })
		}
	}
	return byAddress
}

func (c *callee) ref() diag.Ref { return c.service.Origin.Ref() }
