package compile

import (
	"slices"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Questions are about both ends of calls in the mesh of a compiler, without the whole configuration
// of a proxy. They are for one goroutine.
type Questions struct {
	plan        *plan
	connections map[connectionKey]Connections
	exceptions  map[*mesh.Service]exceptions
}

// Ask calls do with questions about the last snapshot. No other call of the compiler runs
// meanwhile, and the questions must not be used afterwards.
func (c *Compiler) Ask(do func(*Questions) error) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.model.graph.Do(func(r *query.Reader) {
		err = do(&Questions{c.model.context(r), map[connectionKey]Connections{}, map[*mesh.Service]exceptions{}})
	})
	return err
}

// Inbound returns the listeners for calls to the workload of a sidecar, as Compiler.Proxy has
// them. Their address may be "", as in package ir.
func (q *Questions) Inbound(of mesh.Traits) []*ir.Listener {
	who := q.plan.callerOf(of)
	c := q.plan.writer(q.scope(who), who)
	c.inbound = map[int]*mesh.Instance{}
	c.inboundListeners()
	c.guard()
	listeners, _ := ir.CloseListeners(c.listeners, &ir.Config{Clusters: c.sortedClusters()})
	return listeners
}

// scope returns the scope of a caller, with its Sidecar and the DestinationRules that select it.
func (q *Questions) scope(who *caller) scope {
	s := who.scope
	s.sidecar, s.selection = q.plan.sidecarOf(who), q.plan.selectionOf(who)
	return s
}

// Outlook decides what a proxy sees of the mesh. Proxies with equal ones call others in the same
// way.
type Outlook struct {
	scope     scope
	namespace string
}

// Outlook returns that of a proxy.
func (q *Questions) Outlook(of mesh.Traits) Outlook {
	who := q.plan.callerOf(of)
	return Outlook{q.scope(who), who.namespace}
}

// Connections says how proxies connect to a port of a service.
type Connections struct {
	// Seen is false if the proxies do not see the service at the port. They then know only its
	// addresses, and send what their workloads send.
	Seen bool
	// Closed is set if proxies connect to nobody.
	Closed bool
	// ByInstance is set if the proxies use mutual TLS to the instances that take it, and plain text to
	// the others. The other fields are set if a DestinationRule decides. Several are set if the
	// subsets of a service differ.
	ByInstance, Plain, MutualTLS, OtherTLS bool
}

// connectionKey has what decides how connections to a port begin: the service, and the rules that
// callers follow.
type connectionKey struct {
	service   *mesh.Service
	port      *mesh.Port
	domain    string
	selection selection
	network   string
}

// Connections returns how proxies with an outlook connect to a port.
func (q *Questions) Connections(from Outlook, to *mesh.Service, port *mesh.Port) Connections {
	if !to.VisibleIn(from.namespace) || !from.scope.sidecar.knows(to, port.Number) {
		return Connections{Plain: true}
	}
	key := connectionKey{service: to, port: port}
	if q.exceptionsOf(to).has(from.namespace) {
		key.domain, key.selection = from.scope.domain, from.scope.selection
	}
	if to.Networks {
		key.network = from.scope.network
	}
	known, ok := q.connections[key]
	if !ok {
		known = q.findConnections(key)
		q.connections[key] = known
	}
	return known
}

// exceptionsOf returns the callers that may follow other rules for a service than the rest.
func (q *Questions) exceptionsOf(to *mesh.Service) exceptions {
	known, ok := q.exceptions[to]
	if !ok {
		known = q.plan.ruleExceptions(to.Hostname)
		q.exceptions[to] = known
	}
	return known
}

func (q *Questions) findConnections(key connectionKey) Connections {
	to := key.service
	if known := q.plan.registry.known[to]; known != nil {
		to = known
	}
	targets := []target{q.plan.newTarget(to, key.port, nil)}
	if rule := q.plan.forSelected(key.domain, key.selection).ruleFor(to.Hostname); rule != nil {
		for _, s := range rule.spec.GetSubsets() {
			t := q.plan.newTarget(to, key.port, s.GetLabels())
			t.subset = s.GetName()
			t.name += "|" + t.subset
			targets = append(targets, t)
		}
	}
	out, closed := Connections{Seen: true}, 0
	for _, t := range targets {
		if q.connection(&out, clusterKey{target: t, domain: key.domain, selection: key.selection, network: key.network}) {
			closed++
		}
	}
	out.Closed = closed == len(targets)
	return out
}

// connection adds how proxies connect to a cluster, and reports whether they connect to nobody.
func (q *Questions) connection(to *Connections, key clusterKey) (closed bool) {
	part := q.plan.clusters.Get(q.plan.r, key)
	tls := part.cluster.TLS
	switch {
	case part.cluster.EndpointKey == ir.Nobody:
		return true
	case !part.decidesTLS:
		to.ByInstance = true
	case tls == nil:
		to.Plain = true
	case q.ofWorkloads(tls):
		to.MutualTLS = true
	default:
		to.OtherTLS = true
	}
	return false
}

// ofWorkloads reports whether TLS shows the certificate of the workload.
func (q *Questions) ofWorkloads(tls *ir.ClientTLS) bool {
	files, lack := workloadFiles(q.plan.settings)
	if lack != (unmet{}) {
		return false
	}
	own := []string{files.CertificateFile, files.secret}
	return slices.Equal(own, []string{tls.CertificateFile, tls.SecretName})
}
