package reach

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/mesh"
)

// caller is an account of a namespace whose workloads call others in the same way.
type caller struct {
	name      string // NAMESPACE/ACCOUNT, or explain.Outside
	namespace string // "" outside
	is        presence
	proxyless bool
	outlook   compile.Outlook
	secured   bool // its proxy has a certificate
	network   string
	principal string
	addresses []netip.Addr // none if they are not known
	many      bool         // there are too many addresses
	number    int
}

// callerKey distinguishes callers.
type callerKey struct {
	namespace, account, network string
	is                          presence
	proxyless, secured          bool
	outlook                     compile.Outlook
}

// mostAddresses is how many addresses of an account are compared with blocks of addresses.
const mostAddresses = 256

// callers returns the selected callers, sorted by name.
func (a *asked) callers() []*caller {
	byKey := map[callerKey]*caller{}
	seen := map[[3]string]bool{}
	for _, svc := range a.snapshot.Services {
		if svc.External || svc.Egress || !a.may(svc.Namespace) || !a.from.takes(svc, a.settings.Domain) {
			continue
		}
		for _, i := range svc.Instances {
			id := [3]string{svc.Namespace, i.Address, i.Account}
			if seen[id] || !a.from.takesAccount(i.Account) {
				continue
			}
			seen[id] = true
			proxy, is := a.fleet.beside(i, a.settings)
			a.addCaller(byKey, svc.Namespace, i.Account, i.Network, i.Address, proxy, is)
		}
	}
	if a.from.host == "" && a.from.account == "" && !a.from.outside {
		for _, p := range a.fleet.gateways(a.snapshot, a.settings) {
			if home := a.settings.NamespaceOf(p.Proxy); a.may(home) && (a.from.namespace == "" || a.from.namespace == home) {
				a.addCaller(byKey, home, "", "", p.IP, p, present)
			}
		}
	}
	var all []*caller
	for _, c := range byKey {
		if c.many {
			c.addresses = nil
		}
		all = append(all, c)
	}
	if a.from.all() || a.from.outside {
		all = append(all, &caller{name: explain.Outside})
	}
	slices.SortFunc(all, func(x, y *caller) int {
		return cmp.Or(cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.name, y.name), cmp.Compare(x.is, y.is), cmp.Compare(x.network, y.network),
			slices.CompareFunc(x.addresses, y.addresses, netip.Addr.Compare))
	})
	for n, c := range all {
		c.number = n
	}
	return all
}

// unknownAccount stands for an account that is not known.
const unknownAccount = "?"

func (a *asked) addCaller(to map[callerKey]*caller, namespace, account, network, address string, proxy Proxy, is presence) {
	key := callerKey{namespace: namespace, account: account, network: network, is: is, proxyless: proxy.Proxyless}
	key.secured = !a.settings.WorkloadCertificates.None() && !proxy.V1 && !proxy.Proxyless && is != absent
	if is != absent && !proxy.Proxyless {
		key.outlook = a.questions.Outlook(a.traits(proxy).Traits)
	}
	c := to[key]
	if c == nil {
		c = &caller{
			name: namespace + "/" + cmp.Or(account, unknownAccount), namespace: namespace, is: is, proxyless: proxy.Proxyless, outlook: key.outlook,
			secured: key.secured, network: network, principal: "spiffe://" + a.settings.SPIFFETrustDomain() + "/ns/" + namespace + "/sa/" + account,
		}
		to[key] = c
	}
	at, err := netip.ParseAddr(address)
	if err != nil || len(c.addresses) == mostAddresses {
		c.many = true
		return
	}
	c.addresses = append(c.addresses, at.Unmap())
}

// traits returns those of a proxy, with their key.
func (a *asked) traits(of Proxy) keyedTraits {
	id := of.Namespace + "|" + of.String() + "|" + of.Labels.String()
	known, ok := a.known[id]
	if !ok {
		known.Traits = a.snapshot.TraitsOf(of.Proxy)
		known.key = known.Key()
		a.known[id] = known
	}
	return known
}

type keyedTraits struct {
	mesh.Traits
	key string
}
