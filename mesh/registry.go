package mesh

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// registry is the state from which a Registry was built. Each Registry passes it on
// to the next one and it changes on the way: only what a change touches is rebuilt.
type registry struct {
	settings *Settings

	mu        sync.Mutex
	at        *Registry // the Registry that it represents; nil during a change and after one that was aborted
	entries   map[schema.Key]*entry
	claims    map[string][]*claim // by host, in order of precedence
	workloads workloads
	selectors selectors
	peers     peerPolicies
	withheld  withholding
	problems  map[diag.Ref]diag.List // of objects that have any
	now       *entry                 // the entry that is being built
}

// newRegistry builds a registry from scratch.
func newRegistry(settings *Settings, objects map[string][]*schema.Object) *Registry {
	r := &registry{
		settings: settings, entries: map[schema.Key]*entry{}, claims: map[string][]*claim{},
		workloads: newWorkloads(), selectors: selectors{}, peers: peerPolicies{}, problems: map[diag.Ref]diag.List{},
		withheld: newWithholding(settings.BudgetOrDefault()),
	}
	return r.update(&Registry{}, registryChanges{added(objects["ServiceEntry"]), added(objects["WorkloadEntry"]), added(objects[schema.KindPeerAuthentication])})
}

// registryChanges are the changes of the objects that the registry is made of.
type registryChanges struct{ entries, workloads, peers []schema.Change }

func (c registryChanges) any() bool { return len(c.entries)+len(c.workloads)+len(c.peers) > 0 }

func added(objs []*schema.Object) []schema.Change {
	out := make([]schema.Change, len(objs))
	for i, o := range objs {
		out[i].After = o
	}
	return out
}

// next returns the registry after changes that lead to these objects. Unaffected
// services stay identical. If another registry was already made from r, next builds
// one from scratch.
func (r *Registry) next(objects map[string][]*schema.Object, changes registryChanges) *Registry {
	by := r.by
	by.mu.Lock()
	defer by.mu.Unlock()
	if by.at != r {
		return newRegistry(by.settings, objects)
	}
	return by.update(r, changes)
}

// update omits objects that cannot be a service or an instance. Each becomes a
// problem on its object.
func (r *registry) update(last *Registry, changes registryChanges) *Registry {
	r.at = nil
	t := &touched{entries: map[*entry]bool{}, hosts: map[string]bool{}, objects: map[diag.Ref]bool{}}
	for _, c := range changes.peers {
		r.replacePeerPolicy(c, t)
	}
	for _, c := range changes.workloads {
		r.replaceWorkload(c, t)
	}
	for _, c := range changes.entries {
		r.replaceEntry(c, t)
	}
	r.withhold(t)
	r.settle(t)
	for e := range t.entries {
		r.build(e, t)
	}
	next := last.with(r.link(t))
	next.Problems = replacedProblems(last.Problems, r.newProblems(t))
	next.ClosedPorts = r.withheld.ports
	next.Parts = r.withheld.whole.Parts() + r.withheld.bare.Parts()
	next.by, r.at = r, next
	return next
}

// touched has the services and instances that a change affects.
type touched struct {
	entries map[*entry]bool   // to be rebuilt, at least for some hosts
	hosts   map[string]bool   // hosts whose services are rebuilt
	objects map[diag.Ref]bool // objects whose problems may change
}

// touch marks an entry, with all its hosts, for rebuilding.
func (t *touched) touch(e *entry) {
	t.entries[e] = true
	for _, host := range e.spec.GetHosts() {
		t.hosts[host] = true
	}
}

// entry is a ServiceEntry.
type entry struct {
	*schema.Object
	spec   *networking.ServiceEntry // nil if it cannot be used
	claims []*claim                 // one for each host; nil for a repeated host
	picked []*workload
	fits   int   // number of workloads that its selector matches, picked or not
	under  label // key under which its selector is found

	problems  diag.Collector
	elsewhere map[diag.Ref]*diag.Collector // problems of workloads that it picks
	own       schema.Own
}

func (e *entry) report(p diag.Problem) {
	if p.Object == e.Key().Ref() {
		e.problems.Add(p)
		return
	}
	if e.elsewhere == nil {
		e.elsewhere = map[diag.Ref]*diag.Collector{}
	}
	if e.elsewhere[p.Object] == nil {
		e.elsewhere[p.Object] = &diag.Collector{}
	}
	e.elsewhere[p.Object].Add(p)
}

// report adds a problem to the entry that is being built.
func (r *registry) report(p diag.Problem) { r.now.report(p) }

func (r *registry) replaceEntry(c schema.Change, t *touched) {
	key := c.Key()
	t.objects[key.Ref()] = true
	if old := r.entries[key]; old != nil {
		r.leave(old, t)
	}
	if c.After != nil {
		r.enter(&entry{Object: c.After}, t)
	}
}

// enter reads an entry. It is built after all have entered.
func (r *registry) enter(e *entry, t *touched) {
	r.entries[e.Key()] = e
	e.own = schema.OwnOf(e.Object)
	spec, err := e.Spec()
	readable, ok := spec.(*networking.ServiceEntry)
	if err != nil || !ok {
		e.report(unreadable(e.Object, err))
		return
	}
	e.spec = readable
	r.claim(e)
	r.selectors.add(e)
	r.fit(e, 1, t)
	t.touch(e)
}

func (r *registry) leave(e *entry, t *touched) {
	delete(r.entries, e.Key())
	delete(t.entries, e)
	r.unclaim(e, t)
	r.selectors.remove(e)
	r.fit(e, -1, t)
	r.pick(e, nil, t)
	r.withheld.forget(e)
}

// build makes the services of an entry for the touched hosts.
func (r *registry) build(e *entry, t *touched) {
	t.objects[e.Key().Ref()] = true
	e.problems, e.elsewhere = diag.Collector{}, nil
	r.now = e
	r.pick(e, r.wanted(e), t)
	r.add(e, t.hosts)
	r.now = nil
}

// NamespaceOf returns the namespace in a name like
// reviews.default.svc.cluster.local or default.svc.cluster.local, or "" if there is
// none.
func NamespaceOf(name, domain string) string {
	local, ok := strings.CutSuffix(name, ".svc."+domain)
	if !ok {
		return ""
	}
	return local[strings.LastIndexByte(local, '.')+1:]
}

// add makes services for those of the hosts that belong to the entry. They all have
// the same ports and endpoints.
func (r *registry) add(e *entry, hosts map[string]bool) {
	o, entry := e.Object, e.spec
	resolution, served := resolutions[entry.GetResolution()]
	ports, check := r.ports(o, entry), healthCheck(o, r.report)
	withheld, closed := r.withheld.has(e), r.withheld.isClosed(e)
	var endpoints []endpoint
	if served {
		endpoints = r.endpoints(e, resolution)
	} else {
		resolution = Static // without endpoints
		r.report(unknownResolution(o, entry.GetResolution()))
	}
	if n := len(endpoints); n > 1 && entry.GetResolution() == networking.ServiceEntry_DNS_ROUND_ROBIN {
		r.report(manyNames(o, n))
	}
	endpointPorts, own := r.endpointPorts(ports, endpoints), addresses(entry)
	for i, host := range entry.GetHosts() {
		c := e.claims[i]
		if c == nil {
			r.report(r.repeated(o, i, host))
			continue
		}
		if c.lostTo != nil {
			r.report(r.conflict(c, i, host))
		}
		if c.void || closed || !hosts[host] {
			continue
		}
		svc := &Service{
			Created:     e.Object.Meta.CreationTimestamp.Time,
			Hostname:    host,
			Namespace:   o.Meta.Namespace,
			ExportTo:    r.settings.ExportTo(entry.GetExportTo()),
			Addresses:   own,
			Ports:       ports,
			External:    entry.GetLocation() == networking.ServiceEntry_MESH_EXTERNAL,
			Resolution:  resolution,
			OneAddress:  entry.GetResolution() == networking.ServiceEntry_DNS_ROUND_ROBIN,
			Sockets:     slices.ContainsFunc(endpointPorts, endpointPort.isSocket),
			Networks:    slices.ContainsFunc(endpoints, r.behindGateway),
			HealthCheck: check,
			Withheld:    withheld || !served,
			Origin:      o.Key(),

			SubjectAltNames: entry.GetSubjectAltNames(),
		}
		svc.Instances = r.instances(svc, endpointPorts)
		c.service = svc
	}
	if withheld {
		r.report(r.withheld.problem(e))
		return
	}
	r.reportIgnored(o, entry)
}

var resolutions = map[networking.ServiceEntry_Resolution]Resolution{
	networking.ServiceEntry_STATIC:          Static,
	networking.ServiceEntry_DNS:             DNS,
	networking.ServiceEntry_DNS_ROUND_ROBIN: DNS,
	networking.ServiceEntry_NONE:            Passthrough,
}

func unknownResolution(o *schema.Object, r networking.ServiceEntry_Resolution) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.PartLeftOut, Object: o.Key().Ref(), Field: "spec.resolution",
		Value:   fmt.Sprintf("%q", r),
		Message: "requests for the hosts fail, because no proxy supports this resolution: use NONE, STATIC, DNS or DNS_ROUND_ROBIN",
	}
}

func addresses(entry *networking.ServiceEntry) []string {
	var out []string
	seen := map[string]bool{}
	for _, text := range entry.GetAddresses() {
		if address := canonicalBlock(text); !seen[address] {
			seen[address] = true
			out = append(out, address)
		}
	}
	return out
}

func manyNames(o *schema.Object, n int) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Code: diag.NotFollowed, Object: o.Key().Ref(), Field: "spec.workloadSelector",
		Value: fmt.Sprintf("%d workloads", n), Message: "each of them is resolved to all its addresses, as with DNS: DNS_ROUND_ROBIN allows at most one endpoint",
	}
}

// reportIgnored reports settings of a valid entry that no proxy follows.
func (r *registry) reportIgnored(o *schema.Object, entry *networking.ServiceEntry) {
	for i, e := range entry.GetEndpoints() {
		r.reportUnheeded(e, e.GetLabels(), o.Key().Ref(), fmt.Sprintf("spec.endpoints[%d]", i), r.report)
	}
}

func unreadable(o *schema.Object, err error) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.Malformed, Code: diag.PartLeftOut, Object: o.Key().Ref(), Field: "spec",
		Message: fmt.Sprintf("the object is left out, its spec does not decode: %v", err),
	}
}
