package mesh

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/schema"
)

// places are the localities among which a proxy's own makes a difference, each
// with all that it begins with: those of instances, and those that rules name.
// They are a bound to what nodes say of themselves. Of each it is counted how
// many state it.
type places struct {
	known tally
	// asked is how many rules that callers in a namespace see want to know where
	// they are; under * for all.
	asked tally
}

// placesAfter are those of a snapshot that came by changes from one before, nil
// for none.
func (s *Snapshot) placesAfter(before *Snapshot, changes []schema.Change) places {
	known, asked := map[string]int{}, map[string]int{}
	for _, c := range s.ServicesSince(before) {
		placesOf(c.Before, -1, known)
		placesOf(c.After, 1, known)
	}
	for _, c := range changes {
		s.askedBy(c.Before, -1, known, asked)
		s.askedBy(c.After, 1, known, asked)
	}
	var out places
	if before == nil {
		namedPlaces(s.Settings.LocalityLbSetting, 1, known)
	} else {
		out = before.places
	}
	out.known = counted(out.known, known, outerPlace)
	out.asked = counted(out.asked, asked, func(string) string { return "" })
	return out
}

// outerPlace is the locality that one is in; "" for a region.
func outerPlace(locality string) string {
	at := strings.LastIndex(locality, "/")
	return locality[:max(at, 0)]
}

// placesOf counts the localities of a service's instances, each once.
func placesOf(svc *Service, n int, known map[string]int) {
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

// askedBy counts what a DestinationRule asks of its callers.
func (s *Snapshot) askedBy(o *schema.Object, n int, known, asked map[string]int) {
	if o == nil {
		return
	}
	spec, err := o.Spec()
	rule, ok := spec.(*networking.DestinationRule)
	if err != nil || !ok || !schema.AsksForLocalities(rule, s.Settings.LocalityLbSetting) {
		return
	}
	schema.EachLoadBalancer(rule, func(lb *networking.LoadBalancerSettings) { namedPlaces(lb.GetLocalityLbSetting(), n, known) })
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

// namedPlaces counts where a setting says that callers are.
func namedPlaces(l *networking.LocalityLoadBalancerSetting, n int, known map[string]int) {
	for _, d := range l.GetDistribute() {
		if from := strings.TrimSuffix(strings.TrimSuffix(d.GetFrom(), "*"), "/"); from != "" {
			known[from] += n
		}
	}
	for _, f := range l.GetFailover() {
		known[f.GetFrom()] += n
	}
}

// asksPlace reports whether it matters where callers in a namespace are.
func (s *Snapshot) asksPlace(namespace string) bool {
	ofMesh := s.Settings.LocalityLbSetting
	return schema.LocalitiesEnabled(ofMesh) && len(ofMesh.GetDistribute()) > 0 ||
		s.places.asked.has(everyNamespace) || s.places.asked.has(namespace)
}

// unknownPlace stands for a part of a locality that nobody knows.
const unknownPlace = "_unknown"

// place is one for all localities that give the same configuration: as much of
// its beginning as is known.
func (s *Snapshot) place(given string) string {
	known := given
	for known != "" && !s.places.known.has(known) {
		known = outerPlace(known)
	}
	if known == given || known == "" {
		return known
	}
	return known + "/" + unknownPlace
}

// placeOf is where a proxy is, as far as that matters: where its node says, else
// where the first is of its own instances of which it is known.
func (s *Snapshot) placeOf(p Proxy, own []*Instance) string {
	if p.Locality != "" {
		return s.place(p.Locality)
	}
	for _, i := range own {
		if i.Zone != "" {
			return s.place(i.Zone)
		}
	}
	return ""
}

// SameStated reports whether proxies that state some domain or locality are told
// apart as in another snapshot: false as well when that is not known.
func (s *Snapshot) SameStated(other *Snapshot) bool {
	return s.domains.names == other.domains.names && s.places.known.names == other.places.known.names &&
		s.places.asked.names == other.places.asked.names
}
