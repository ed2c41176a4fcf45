package compile

import (
	"fmt"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// plan is all that compiling needs and that no view changes. It is made once a
// snapshot and not changed after that, so views may be compiled in parallel.
type plan struct {
	snap             *mesh.Snapshot
	egress           []*mesh.Service                // hosts of EgressRules, as services
	byEgress         map[string]*mesh.Service       // the same by host
	rules            map[string][]*routeRule        // by destination host, first to apply first
	routes           map[servicePort][]plannedRoute // of HTTP ports, the last one without source or match
	policies         map[labelled][]*policy         // by destination, first to win first
	versions         map[labelled]bool              // whether any instance is of the version
	routed           map[labelled]bool              // versions that some route goes to
	namesakes        map[string][]*mesh.Service     // of the mesh, by host name up to the first dot
	virtualServices  []*virtualService              // in tie-break order
	destinationRules []*destinationRule             // in tie-break order
	virtualOf        claims[virtualService]         // for sidecars
	settingsOf       claims[destinationRule]
	byGateway        map[string][]*virtualService // those that name a gateway, by its namespace/name
	ingress          []*ingressRule               // in tie-break order
	gateways         []*gateway                   // in tie-break order
	gatewayNames     map[string]bool              // namespace/name
	problems         diag.Collector
}

// servicePort is needed where ports are told apart: the hosts of one
// ServiceEntry have the very same ports.
type servicePort struct {
	service *mesh.Service
	port    *mesh.Port
}

type planKey struct{}

func planOf(s *mesh.Snapshot) *plan {
	return s.Derived(planKey{}, func() any { return newPlan(s) }).(*plan)
}

func newPlan(s *mesh.Snapshot) *plan {
	p := &plan{
		snap:         s,
		namesakes:    namesakes(s.Services),
		gatewayNames: map[string]bool{},
		byGateway:    map[string][]*virtualService{},
		byEgress:     map[string]*mesh.Service{},
		rules:        map[string][]*routeRule{},
		routes:       map[servicePort][]plannedRoute{},
		policies:     map[labelled][]*policy{},
		versions:     map[labelled]bool{},
		routed:       map[labelled]bool{},
	}
	p.checkLimits()
	p.planEgressRules()
	p.planRouteRules()
	p.planRoutes()
	p.readDestinationRules()
	p.readVirtualServices()
	p.indexNames()
	p.checkNetworking()
	p.planDestinationPolicies()
	p.planIngressRules()
	p.planGateways()
	return p
}

// checkLimits says what cannot be followed of each object by itself; whoever
// wrote it was warned of the same.
func (p *plan) checkLimits() {
	for _, kind := range schema.Kinds() {
		for _, o := range p.snap.Objects(kind.Kind) {
			p.problems.Add(schema.NotHonoured(o)...)
		}
	}
}

// checkNetworking says what is wrong with the networking kinds, with names as
// proxies of their own namespaces complete them. All of them have been read.
func (p *plan) checkNetworking() {
	for _, rule := range p.destinationRules {
		p.home(rule.ref.Namespace).checkDestinationRule(rule)
	}
	for _, vs := range p.virtualServices {
		p.checkVirtualService(vs)
	}
	for _, svc := range p.snap.Services {
		p.checkExternalName(svc)
	}
}

// checkExternalName reports TLS ports that plain HTTP is sent to.
func (p *plan) checkExternalName(svc *mesh.Service) {
	for _, port := range svc.Ports {
		if port.Protocol == mesh.HTTPS && p.routesHTTP(svc, port) {
			p.notHonoured(svc.Origin.Ref(), "spec.ports", fmt.Sprintf(
				"requests to port %d of %s are taken and sent on as plain HTTP, as it is a service with an external name; %s",
				port.Number, svc.Hostname, switchHint("externalNameHTTPSAsHTTP", "connections are passed on as they are")))
		}
	}
}

// pilot are the accidents of Pilot that this mesh keeps.
func (p *plan) pilot() mesh.V1Compatibility { return p.snap.Settings.V1Compatibility }

// service by host name, of the registry or of an EgressRule; nil when there is
// none.
func (p *plan) service(host string) *mesh.Service {
	if svc := p.snap.Service(host); svc != nil {
		return svc
	}
	return p.byEgress[host]
}

// routesHTTP reports whether requests to the port are routed one by one. TLS to
// a host outside may start at the proxy, which then takes plain HTTP.
func (p *plan) routesHTTP(svc *mesh.Service, port *mesh.Port) bool {
	if port.Protocol != mesh.HTTPS {
		return port.Protocol.IsHTTP()
	}
	return isEgress(svc) || svc.NamesExternal() && p.pilot().ExternalNameHTTPSAsHTTP
}

func namesakes(services []*mesh.Service) map[string][]*mesh.Service {
	out := map[string][]*mesh.Service{}
	for _, svc := range services {
		if name, _, ok := strings.Cut(svc.Hostname, "."); ok && !svc.External {
			out[name] = append(out[name], svc)
		}
	}
	return out
}
