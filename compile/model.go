package compile

import (
	"maps"
	"reflect"
	"slices"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// model is the mesh as the compiler sees it. Its objects and services are inputs;
// everything derived from them is a query.
type model struct {
	settings *mesh.Settings
	graph    *query.Graph

	registry    *registry
	budget      *budget
	passthrough *ir.Cluster
	callers     map[string]*caller // by view

	routeRules          *kind[routeRule]
	destinationPolicies *kind[policy]
	egressRules         *kind[egressRule]
	ingressRules        *kind[ingressRule]
	virtualServices     *kind[virtualService]
	destinationRules    *kind[destinationRule]
	gateways            *kind[gateway]
	sidecars            *kind[sidecar]
	peerAuthentications *kind[peerAuthentication]
	policies            *kind[authorizationPolicy]
	authentications     *kind[requestAuthentication]
	certificates        *kind[secret]

	secretNamed *index[string, secret]
	fileSecrets *query.Input[string, mesh.FileSecret] // those that the settings name
	roots       *query.Input[none, mesh.Roots]
	rootsName   *query.Query[none, string]                // of their secret
	keySets     *query.Input[mesh.KeySource, mesh.KeySet] // those that the server fetched: keysNow
	keysNow     *mesh.KeySets
	keysFull    *query.Input[none, bool] // whether the server fetches as many key sets as it may
	holdings    *query.Query[string, holding]
	secrets     *query.Query[string, *ir.Secret]

	rulesFor    *index[string, routeRule]   // by destination host, in order of precedence
	rulesUnder  *index[string, routeRule]   // by the wildcards that cover their hosts
	rulesInto   *index[labelled, routeRule] // by the versions that they send requests to
	virtualInto *index[string, virtualService]
	policiesFor *index[labelled, policy] // in order of precedence
	byGateway   *index[string, virtualService]
	// Both by namespace and name: the VirtualServices themselves, and those that
	// delegate to that name.
	virtualNamed, delegators *index[string, virtualService]
	virtualOf                *hostIndex[virtualService]     // of sidecars
	virtualByHost            *index[string, virtualService] // of sidecars, in all namespaces
	virtualByWildcard        *index[wildcardFor, virtualService]
	wildcardNamespaces       *query.Query[wildcardFor, map[string]bool]
	ownersBeneath            *query.Query[string, []string]
	takersBeneath            *query.Query[wildcardFor, []string]
	virtualHTTP              *index[none, virtualService] // those with HTTP routes for sidecars
	settingsOf               *hostIndex[destinationRule]
	selectingIn              *index[string, destinationRule] // by namespace, in order of precedence
	ruleNamed                *index[string, destinationRule]
	rulesAt                  *query.Query[rulesKey, *mergedRule]
	mergedRules              *query.Query[string, *mergedRule]
	sidecarsIn               *index[string, sidecar]            // by namespace, in order of precedence
	peersIn                  *index[string, peerAuthentication] // the same
	policiesIn               *index[string, authorizationPolicy]
	authenticationsIn        *index[string, requestAuthentication]
	importing                *query.Query[imports, *sidecar]
	gatewayNamed             *index[string, gateway]

	virtualCosts *account[virtualService]
	ruleCosts    *account[routeRule]
	ingressCosts *account[ingressRule]
	gatewayFits  *query.Query[*gateway, gatewayFit]

	egressDeclared    *query.Query[none, *egressPlan] // including withheld rules
	egress            *query.Query[none, *egressPlan]
	egressHost        *query.Query[string, *mesh.Service]
	edges             *query.Query[gatewaySet, *edgePlan]
	edgeSurvey        *query.Query[none, *edgeSurvey]
	edgeProblems      *query.Query[gatewaySet, diag.List] // those that no router of the survey has
	routed            *query.Query[labelled, bool]
	firstPolicies     *query.Query[labelled, map[string]*policy]
	hidden, tied      *query.Query[string, map[*routeRule]*routeRule]
	delegated         *query.Query[*virtualService, []*httpRoute]
	settingsExcept    *query.Query[string, exceptions]          // callers with other DestinationRules for a host
	virtualExcept     *query.Query[string, exceptions]          // callers with other VirtualServices for a host
	destinationExcept *query.Query[*virtualService, exceptions] // callers whom the VirtualService may send elsewhere
	routes            *query.Query[servicePort, []plannedRoute]
	httpLayout        *query.Query[layoutKey, []plannedRoute]
	tcpLayout         *query.Query[layoutKey, []plannedTCP]
	overVersions      *query.Query[versionsKey, bool]
	byPort            *query.Query[*mesh.Service, *byPort]
	peers             *query.Query[target, *peers]
	clusters          *query.Query[clusterKey, clusterPart]
	orders            *query.Query[orderKey, *ir.Cluster]
	portExcept        *query.Query[servicePort, exceptions] // callers with other routes to a port
	entries           *query.Query[entryKey, *entry]
	plain             *query.Query[plainKey, *entry]
	contested         *query.Query[none, contested]
	laid              laid
	tables            *query.Query[*tableLayout, *scopeTable]
	stretches         *query.Query[*stretch, *stretchPart]
	layouts           *query.Query[scope, *layout]
	addresses         *query.Query[addressKey, *addressOwners]
	seesApart         *query.Query[none, map[string]bool]
	openPorts         *query.Query[scope, []openPort]
	httpNumbers       *query.Query[none, []int]
	contenders        *query.Query[contendersKey, *contenders]
	findingRuledHosts *query.Query[none, []ruledHosts]
	ruledNow          map[ruledGroup]ruledHosts
	ruledHosts        *query.Input[ruledGroup, *ruledHosts] // the same hosts as inputs, which all other queries read
	ruledGroups       *query.Input[none, *list[ruledGroup]]
	groupExcept       *query.Query[ruledGroup, exceptions] // callers with other VirtualServices for a host of the group
	ruled             *query.Query[ruledKey, ruledHost]
	undeclared        *query.Query[scope, *undeclared]
	undeclaredOf      *query.Query[undeclaredKey, *undeclared]
	undeclaredSigns   *query.Query[scope, undeclaredSigns]
	findingCrowds     *query.Query[none, []*virtualService]
	crowdsNow         *list[virtualService]
	crowds            *query.Input[none, *list[virtualService]] // like ruledHosts
	standIns          *query.Query[standIn, servicePort]
	undeclaredPorts   *query.Query[none, *undeclaredPorts]
	hosts             *query.Query[hostKey, *hostPart]
	http              *query.Query[*layout, *outbound]
	tcp               *query.Query[scope, *outboundTCP]
	views             *query.Input[string, *caller]
	configs           *query.Query[string, *compiled]
	wide              *query.Query[none, *findings]
	spoken            *query.Query[none, []*findings]
	problems          *query.Query[none, diag.List]
}

// servicePort is a port of a service. The port alone does not identify it: the
// hosts of one ServiceEntry share their ports.
type servicePort struct {
	service *mesh.Service
	port    *mesh.Port
}

// newQuery returns a query whose function receives a plan to read from and report
// to.
func newQuery[K comparable, V any](m *model, same func(a, b V) bool, compute func(*plan, K) V) *query.Query[K, V] {
	return query.New(m.graph, same, func(r *query.Reader, key K) V { return compute(m.context(r), key) })
}

// context returns the plan of one computation. With a nil reader the computation
// may read only its arguments.
func (m *model) context(r *query.Reader) *plan {
	c := struct {
		plan
		found diag.Collector
	}{plan: plan{reader: reader{model: m, r: r}}}
	c.reporter.problems = &c.found
	return &c.plan
}

func equal[V comparable](a, b V) bool { return a == b }

func sameProblems(a, b diag.List) bool { return slices.Equal(a, b) }

func deepEqual[V any](a, b V) bool { return reflect.DeepEqual(a, b) }

// newModel returns the model of an empty mesh.
func newModel(settings *mesh.Settings, graph *query.Graph) *model {
	m := &model{settings: settings, graph: graph, callers: map[string]*caller{}}
	m.registry = newRegistry(m.graph, m)
	m.budget = newBudget(m)
	m.passthrough = passthrough(settings)
	m.readKinds()
	m.findRules()
	m.countParts()
	m.planEdges()
	m.planRoutes()
	m.writeViews()
	m.wide = newQuery(m, sameFindings, (*plan).findWide)
	m.spoken = newQuery(m, slices.Equal[[]*findings], (*plan).findSpoken)
	m.problems = newQuery(m, sameProblems, (*plan).findAll)
	return m
}

// readKinds sets up how objects become rules, and which pass checks each kind.
func (m *model) readKinds() {
	m.routeRules = newKind(m, "RouteRule", inKeyOrder, readRouteRule, (*plan).checkRouteRule)
	m.destinationPolicies = newKind(m, "DestinationPolicy", inKeyOrder, readDestinationPolicy, (*plan).checkPolicy)
	m.egressRules = newKind(m, "EgressRule", m.inAgeOrder, readEgressRule, (*plan).checkEgressRule)
	m.ingressRules = newKind(m, "IngressRule", inKeyOrder, readIngressRule, (*plan).checkIngressRule)
	m.virtualServices = newKind(m, "VirtualService", m.inAgeOrder, readVirtualService, (*plan).checkVirtualService)
	m.destinationRules = newKind(m, "DestinationRule", m.inAgeOrder, readDestinationRule, func(p *plan, rule *destinationRule) {
		p.from(p.homeWith(rule.ref.Namespace, rule.labels)).checkDestinationRule(rule)
	})
	m.destinationRules.instead, m.destinationRules.insteadSays = closingDestinationRule, "requests to the host fail"
	m.gateways = newKind(m, "Gateway", m.inAgeOrder, readGateway, func(*plan, *gateway) {})
	m.certificates = newKind(m, "Secret", inKeyOrder, readSecret, (*plan).checkSecret)
	m.sidecars = newKind(m, "Sidecar", m.inAgeOrder, readSidecar, (*plan).checkSidecar)
	m.peerAuthentications = newKind(m, schema.KindPeerAuthentication, m.inAgeOrder, readPeerAuthentication, (*plan).checkPeerAuthentication)
	m.peerAuthentications.instead, m.peerAuthentications.insteadSays = strictInstead, "its workloads accept only mutual TLS"
	m.policies = newKind(m, schema.KindAuthorizationPolicy, m.inAgeOrder, readAuthorizationPolicy, (*plan).checkAuthorizationPolicy)
	m.policies.instead, m.policies.insteadSays = allowNothing, "it allows nothing"
	m.authentications = newKind(m, schema.KindRequestAuthentication, m.inAgeOrder, readRequestAuthentication, (*plan).checkRequestAuthentication)
	m.authentications.instead, m.authentications.insteadSays = readsNoTokens, "its workloads take no requests"
}

// findRules sets up the indexes that find rules.
func (m *model) findRules() {
	m.rulesFor = newIndex(m.graph, compareRules, func(r *routeRule) []string { return []string{r.host} })
	m.rulesUnder = newIndex(m.graph, compareRules, func(r *routeRule) []string { return slices.Collect(wildcards(r.host)) })
	m.rulesInto = newIndex(m.graph, compareRules, m.versionsOfRule)
	m.routeRules.take = append(m.routeRules.take, m.rulesFor.update, m.rulesUnder.update, m.rulesInto.update)

	m.policiesFor = newIndex(m.graph, func(a, b *policy) int { return inKeyOrder(a.declared, b.declared) },
		func(pol *policy) []labelled { return []labelled{pol.version()} })
	m.destinationPolicies.take = append(m.destinationPolicies.take, m.policiesFor.update)

	byAge := func(a, b *virtualService) int { return m.inAgeOrder(a.declared, b.declared) }
	m.virtualInto = newIndex(m.graph, byAge, m.hostsOfVirtual)
	m.byGateway = newIndex(m.graph, byAge, (*virtualService).gatewayNames)
	m.virtualOf = newHostIndex(m, func(vs *virtualService) claim { return vs }, (*virtualService).meshHosts)
	m.virtualOf.imported = true
	m.virtualHTTP = newIndex(m.graph, byAge, (*virtualService).routesSidecars)
	m.virtualByHost = newIndex(m.graph, byAge, m.virtualOf.names)
	m.virtualByWildcard = newIndex(m.graph, byAge, m.wildcardsFor)
	m.wildcardNamespaces = newQuery(m, maps.Equal[map[string]bool], (*plan).findWildcardNamespaces)
	m.takersBeneath = newQuery(m, slices.Equal[[]string], (*plan).findTakersBeneath)
	m.ownersBeneath = newQuery(m, slices.Equal[[]string], (*plan).findOwnersBeneath)
	m.virtualNamed = newIndex(m.graph, byAge, func(vs *virtualService) []string { return []string{vs.name()} })
	m.delegators = newIndex(m.graph, byAge, (*virtualService).delegateNames)
	m.virtualServices.take = append(m.virtualServices.take, m.virtualInto.update, m.byGateway.update, m.virtualOf.update, m.virtualHTTP.update,
		m.virtualByHost.update, m.virtualByWildcard.update, m.virtualNamed.update, m.delegators.update)

	m.gatewayNamed = newIndex(m.graph, func(a, b *gateway) int { return m.inAgeOrder(a.declared, b.declared) },
		func(gw *gateway) []string { return []string{gw.name()} })
	m.gateways.take = append(m.gateways.take, m.gatewayNamed.update)

	m.secretNamed = newIndex(m.graph, func(a, b *secret) int { return inKeyOrder(a.declared, b.declared) },
		func(s *secret) []string { return []string{s.name()} })
	m.certificates.take = append(m.certificates.take, m.secretNamed.update)
	m.keySets = query.NewInput[mesh.KeySource, mesh.KeySet](m.graph)
	m.keysFull = query.NewInput[none, bool](m.graph)
	m.fileSecrets = query.NewInput[string, mesh.FileSecret](m.graph)
	m.roots = query.NewInput[none, mesh.Roots](m.graph)
	m.rootsName = newQuery(m, equal, nameOfRoots)
	m.holdings = newQuery(m, equal, (*plan).holdingOf)
	m.secrets = newQuery(m, deepEqual, (*plan).secretPart)

	m.sidecarsIn = newIndex(m.graph, func(a, b *sidecar) int { return m.inAgeOrder(a.declared, b.declared) },
		func(sc *sidecar) []string { return []string{sc.ref.Namespace} })
	m.sidecars.take = append(m.sidecars.take, m.sidecarsIn.update)
	m.importing = newQuery(m, equal, importing)

	m.peersIn = newIndex(m.graph, func(a, b *peerAuthentication) int { return m.inAgeOrder(a.declared, b.declared) },
		func(pa *peerAuthentication) []string { return []string{pa.ref.Namespace} })
	m.policiesIn = newIndex(m.graph, func(a, b *authorizationPolicy) int { return m.inAgeOrder(a.declared, b.declared) },
		func(policy *authorizationPolicy) []string { return []string{policy.ref.Namespace} })
	m.policies.take = append(m.policies.take, m.policiesIn.update)
	m.authenticationsIn = newIndex(m.graph, func(a, b *requestAuthentication) int { return m.inAgeOrder(a.declared, b.declared) },
		func(ra *requestAuthentication) []string { return []string{ra.ref.Namespace} })
	m.authentications.take = append(m.authentications.take, m.authenticationsIn.update)
	m.peerAuthentications.take = append(m.peerAuthentications.take, m.peersIn.update)

	m.settingsOf = newHostIndex(m, func(rule *destinationRule) claim { return rule }, (*destinationRule).hosts)
	m.selectingIn = newIndex(m.graph, func(a, b *destinationRule) int { return m.inAgeOrder(a.declared, b.declared) },
		(*destinationRule).selectsIn)
	m.ruleNamed = newIndex(m.graph, func(a, b *destinationRule) int { return m.inAgeOrder(a.declared, b.declared) },
		func(rule *destinationRule) []string { return []string{rule.name()} })
	m.mergedRules = newQuery(m, equal, (*plan).mergeRules)
	m.rulesAt = newQuery(m, equal, (*plan).mergedAt)
	m.destinationRules.take = append(m.destinationRules.take, m.settingsOf.update, m.selectingIn.update, m.ruleNamed.update)
}

// countParts sets up the queries that count how far rules multiply.
func (m *model) countParts() {
	m.virtualCosts = newAccount(m, m.virtualServices, (*virtualService).origin, (*plan).virtualCost)
	m.gatewayFits = newQuery(m, equal, (*plan).fitGateway)
	m.undeclaredPorts = newQuery(m, (*undeclaredPorts).equal, (*plan).findUndeclaredPorts)
	m.ruleCosts = newAccount(m, m.routeRules, func(rule *routeRule) declared { return rule.declared }, (*plan).ruleCost)
	m.ingressCosts = newAccount(m, m.ingressRules, func(rule *ingressRule) declared { return rule.declared }, (*plan).ingressCost)
	newAccount(m, m.egressRules, func(rule *egressRule) declared { return rule.declared }, egressCost)
	newAccount(m, m.gateways, func(gw *gateway) declared { return gw.declared }, (*plan).gatewayCost)
}

// planEdges sets up the queries of rules that affect the whole mesh.
func (m *model) planEdges() {
	m.egressDeclared = newQuery(m, deepEqual, func(p *plan, _ none) *egressPlan { return p.planEgress() })
	m.egress = newQuery(m, equal, (*plan).openEgress)
	m.egressHost = newQuery(m, equal, func(p *plan, host string) *mesh.Service { return p.egress.Get(p.r, none{}).byHost[host] })
	m.edges = newQuery(m, equal, (*plan).planGateways)
	m.edgeSurvey = newQuery(m, equal, func(p *plan, _ none) *edgeSurvey { return p.surveyEdges() })
	m.edgeProblems = newQuery(m, sameProblems, func(p *plan, set gatewaySet) diag.List {
		return unlike(p.edgeSurvey.Get(p.r, none{}).problems, p.edges.Get(p.r, set).problems)
	})
}

// planRoutes sets up the queries that decide where requests go, for callers of one
// domain or of all domains.
func (m *model) planRoutes() {
	m.routed = newQuery(m, equal, (*plan).isRouted)
	m.firstPolicies = newQuery(m, maps.Equal[map[string]*policy], (*plan).firstBySource)
	m.hidden = newQuery(m, maps.Equal[map[*routeRule]*routeRule], (*plan).hiddenRules)
	m.tied = newQuery(m, maps.Equal[map[*routeRule]*routeRule], (*plan).tiedRules)
	m.delegated = newQuery(m, slices.Equal[[]*httpRoute], (*plan).mergeDelegates)
	m.settingsExcept = newQuery(m, exceptions.equal, func(p *plan, host string) exceptions { return m.settingsOf.exceptions(&p.reader, host) })
	m.virtualExcept = newQuery(m, exceptions.equal, func(p *plan, host string) exceptions { return m.virtualOf.exceptions(&p.reader, host) })
	m.destinationExcept = newQuery(m, exceptions.equal, (*plan).exceptedByDestination)
	m.portExcept = newQuery(m, exceptions.equal, (*plan).exceptedAtPort)
	m.routes = newQuery(m, deepEqual, (*plan).ruleRoutes)
	m.httpLayout = newQuery(m, deepEqual, func(p *plan, key layoutKey) []plannedRoute {
		return p.forSelected(key.domain, key.selection).virtualRoutes(key)
	})
	m.tcpLayout = newQuery(m, deepEqual, func(p *plan, key layoutKey) []plannedTCP {
		return p.forSelected(key.domain, key.selection).tcpRoutes(key.vs, key.at.service, key.at.port)
	})
	m.overVersions = newQuery(m, equal, func(p *plan, key versionsKey) bool { return p.excessOfVersions(key).Withheld() })
	m.byPort = newQuery(m, equal, (*plan).instancesByPort)
	m.peers = newQuery(m, deepEqual, (*plan).peersOf)
	m.clusters = newQuery(m, deepEqual, (*plan).clusterOf)
	m.orders = newQuery(m, deepEqual, (*plan).ordered)
}

// writeViews sets up the queries that write the configuration of proxies.
func (m *model) writeViews() {
	m.entries = newQuery(m, equal, newEntry)
	m.plain = newQuery(m, equal, (*plan).plainEntry)
	m.contested = newQuery(m, sameContested, func(p *plan, _ none) contested {
		return p.findContested(slices.Concat(p.services(), p.egressServices()))
	})
	m.laid.tables = map[int]*alive[tableLayout]{}
	m.stretches = query.NewReusing(m.graph, equal, func(r *query.Reader, b *stretch, last *stretchPart) *stretchPart {
		return m.context(r).writeStretch(b, last)
	})
	m.tables = query.NewReusing(m.graph, equal, func(r *query.Reader, t *tableLayout, last *scopeTable) *scopeTable {
		return m.context(r).writeTable(t, last)
	})
	m.layouts = newQuery(m, equal, (*plan).layOut)
	m.addresses = newQuery(m, (*addressOwners).equal, (*plan).findAddressOwners)
	m.seesApart = newQuery(m, maps.Equal[map[string]bool, map[string]bool], func(p *plan, _ none) map[string]bool { return p.findSeesApart() })
	m.openPorts = newQuery(m, slices.Equal[[]openPort], (*plan).findOpenPorts)
	m.httpNumbers = newQuery(m, slices.Equal[[]int], (*plan).findHTTPNumbers)
	m.contenders = newQuery(m, (*contenders).equal, (*plan).findContenders)
	m.findingRuledHosts = newQuery(m, func(a, b []ruledHosts) bool { return slices.EqualFunc(a, b, ruledHosts.equal) }, (*plan).findRuledHosts)
	m.ruledHosts = query.NewInput[ruledGroup, *ruledHosts](m.graph)
	m.ruledGroups = query.NewInput[none, *list[ruledGroup]](m.graph)
	m.groupExcept = newQuery(m, exceptions.equal, (*plan).exceptedInGroup)
	m.ruled = newQuery(m, equal, (*plan).findRuled)
	m.undeclared = newQuery(m, (*undeclared).equal, (*plan).findUndeclared)
	m.undeclaredOf = newQuery(m, (*undeclared).equal, (*plan).findUndeclaredOf)
	m.undeclaredSigns = newQuery(m, equal, (*plan).findUndeclaredSigns)
	m.findingCrowds = newQuery(m, slices.Equal[[]*virtualService], (*plan).findCrowds)
	m.crowds = query.NewInput[none, *list[virtualService]](m.graph)
	m.standIns = newQuery(m, equal, newStandIn)
	m.hosts = query.NewReusing(m.graph, equal, func(r *query.Reader, key hostKey, last *hostPart) *hostPart {
		return m.context(r).writeHost(key, last)
	})
	m.http = query.NewReusing(m.graph, equal, func(r *query.Reader, l *layout, last *outbound) *outbound { return m.context(r).writeOutbound(l, last) })
	m.tcp = query.NewReusing(m.graph, equal, func(r *query.Reader, s scope, last *outboundTCP) *outboundTCP {
		return m.context(r).writeTCP(s, nil, last)
	})
	m.views = query.NewInput[string, *caller](m.graph)
	m.configs = query.NewReusing(m.graph, equal, func(r *query.Reader, key string, last *compiled) *compiled {
		return m.context(r).writeView(key, last)
	})
}

// update applies changes. It must be called within graph.Do.
func (m *model) update(objects map[string][]change[schema.Object], services []mesh.ServiceChange) {
	m.registry.update(services)
	m.routeRules.update(m, objects[m.routeRules.name])
	m.destinationPolicies.update(m, objects[m.destinationPolicies.name])
	m.egressRules.update(m, objects[m.egressRules.name])
	m.ingressRules.update(m, objects[m.ingressRules.name])
	m.virtualServices.update(m, objects[m.virtualServices.name])
	m.destinationRules.update(m, objects[m.destinationRules.name])
	m.gateways.update(m, objects[m.gateways.name])
	m.certificates.update(m, objects[m.certificates.name])
	m.sidecars.update(m, objects[m.sidecars.name])
	m.peerAuthentications.update(m, objects[m.peerAuthentications.name])
	m.policies.update(m, objects[m.policies.name])
	m.authentications.update(m, objects[m.authentications.name])
}

// pilot returns the Pilot quirks that this mesh keeps.
func (m *model) pilot() mesh.V1Compatibility { return m.settings.V1Compatibility }
