package mesh

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/schema"
)

// localities are those that distinguish proxies, each with all its prefixes:
// those of instances, and those that rules name. They bound the effect of what
// nodes state. Each locality is counted, by the services and rules that need it.
type localities struct {
	known tally
	// asked counts, by namespace, the rules visible to callers there that depend on
	// their locality; * is all namespaces.
	asked tally
}

// localitiesAfter returns the localities of a snapshot that follows from before by changes;
// before may be nil.
func (s *Snapshot) localitiesAfter(before *Snapshot, changes []schema.Change) localities {
	known, asked := map[string]int{}, map[string]int{}
	for _, c := range s.ServicesSince(before) {
		countLocalities(c.Before, -1, known)
		countLocalities(c.After, 1, known)
	}
	for _, c := range changes {
		s.askedBy(c.Before, -1, known, asked)
		s.askedBy(c.After, 1, known, asked)
	}
	var out localities
	if before == nil {
		countNamedLocalities(s.Settings.LocalityLbSetting, 1, known)
	} else {
		out = before.localities
	}
	out.known = counted(out.known, known, outerLocality)
	out.asked = counted(out.asked, asked, func(string) string { return "" })
	return out
}

// outerLocality returns the enclosing locality; "" for a region.
func outerLocality(locality string) string {
	at := strings.LastIndex(locality, "/")
	return locality[:max(at, 0)]
}

// countLocalities counts the localities of a service's instances, each once.
func countLocalities(svc *Service, n int, known map[string]int) {
	if svc == nil {
		return
	}
	var seen map[string]bool
	for _, i := range svc.Instances {
		if i.Zone == "" || seen[i.Zone] {
			continue
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		seen[i.Zone] = true
		known[i.Zone] += n
	}
}

// askedBy counts the localities that a DestinationRule depends on.
func (s *Snapshot) askedBy(o *schema.Object, n int, known, asked map[string]int) {
	if o == nil {
		return
	}
	spec, err := o.Spec()
	rule, ok := spec.(*networking.DestinationRule)
	if err != nil || !ok || !schema.AsksForLocalities(rule, s.Settings.LocalityLbSetting) {
		return
	}
	schema.EachLoadBalancer(rule, func(lb *networking.LoadBalancerSettings) { countNamedLocalities(lb.GetLocalityLbSetting(), n, known) })
	seen := viewersOf(s.Settings.ExportToOf(rule), o.Meta.Namespace)
	if seen.all || s.Settings.V1Compatibility.AnyNamespaceRules {
		asked[everyNamespace] += n
		return
	}
	for namespace := range seen.in {
		asked[namespace] += n
	}
}

const everyNamespace = "*"

// countNamedLocalities counts the localities of callers that a setting names.
func countNamedLocalities(l *networking.LocalityLoadBalancerSetting, n int, known map[string]int) {
	for _, d := range l.GetDistribute() {
		if from := strings.TrimSuffix(strings.TrimSuffix(d.GetFrom(), "*"), "/"); from != "" {
			known[from] += n
		}
	}
	for _, f := range l.GetFailover() {
		known[f.GetFrom()] += n
	}
}

// needsLocality reports whether the locality of callers in a namespace matters.
func (s *Snapshot) needsLocality(namespace string) bool {
	ofMesh := s.Settings.LocalityLbSetting
	return schema.LocalitiesEnabled(ofMesh) && len(ofMesh.GetDistribute()) > 0 ||
		s.localities.asked.has(everyNamespace) || s.localities.asked.has(namespace)
}

// unknownPart stands for an unknown part of a locality.
const unknownPart = "_unknown"

// knownLocality maps all localities that give the same configuration to one: the longest
// known prefix.
func (s *Snapshot) knownLocality(given string) string {
	known := given
	for known != "" && !s.localities.known.has(known) {
		known = outerLocality(known)
	}
	if known == given || known == "" {
		return known
	}
	return known + "/" + unknownPart
}

// localityOf returns the locality of a proxy, as far as it matters: the one that its
// node states, else that of its first instance with a locality.
func (s *Snapshot) localityOf(p Proxy, own []*Instance) string {
	if p.Locality != "" {
		return s.knownLocality(p.Locality)
	}
	for _, i := range own {
		if i.Zone != "" {
			return s.knownLocality(i.Zone)
		}
	}
	return ""
}

// SameStated reports whether proxies are distinguished by stated domain and
// locality as in another snapshot. It may return false if that is unknown.
func (s *Snapshot) SameStated(other *Snapshot) bool {
	return s.domains.names == other.domains.names && s.localities.known.names == other.localities.known.names &&
		s.localities.asked.names == other.localities.asked.names
}
