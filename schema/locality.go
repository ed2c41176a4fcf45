package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

func (p *problems) locality(field string, l *networking.LocalityLoadBalancerSetting, o *networking.OutlierDetection) {
	if len(l.GetDistribute()) > 0 && len(l.GetFailover()) > 0 {
		p.forbidden(field+".failover", "cannot stand beside distribute: shares are fixed, or follow what fails")
	}
	var from []string
	for i, d := range l.GetDistribute() {
		at := indexField(field+".distribute", i)
		p.overlap(at+".from", d.From, from)
		from = append(from, d.From)
		p.distribution(at+".to", d.To)
	}
	for i, f := range l.GetFailover() {
		p.failover(indexField(field+".failover", i), f)
	}
	if (len(l.GetFailover()) > 0 || len(l.GetFailoverPriority()) > 0) && o == nil {
		p.warn(field, "fails over only with outlierDetection, which tells what has failed")
	}
}

func (p *problems) distribution(field string, to map[string]uint32) {
	var sum uint64
	var seen []string
	for _, locality := range slices.Sorted(maps.Keys(to)) {
		at := keyField(field, locality)
		p.overlap(at, locality, seen)
		seen = append(seen, locality)
		sum += uint64(to[locality])
		if to[locality] == 0 {
			p.invalidValue(at, 0, "must be from 1 to 100; leave out a locality that gets nothing")
		}
	}
	if sum != 100 {
		p.invalid(field, fmt.Sprintf("the shares must be 100 together, and they are %d", sum))
	}
}

// overlap checks a locality, region/zone/subzone, by itself and against those
// before it. A star stands at the end, for all that begins like this; so does
// nothing.
func (p *problems) overlap(field, locality string, seen []string) {
	star := strings.Index(locality, "*")
	if star >= 0 && star < len(locality)-1 || slices.Contains(strings.Split(locality, "/"), "") || strings.Count(locality, "/") > 2 {
		p.invalidValue(field, locality, "must be region, region/zone or region/zone/subzone, perhaps ending with *")
		return
	}
	for _, other := range seen {
		if localityWithin(locality, other) || localityWithin(other, locality) {
			p.duplicate(field, "overlaps with "+other)
			return
		}
	}
}

func localityWithin(inner, outer string) bool {
	outer = strings.TrimSuffix(strings.TrimSuffix(outer, "*"), "/")
	return outer == "" || inner == outer || strings.HasPrefix(inner, outer+"/")
}

func (p *problems) failover(field string, f *networking.LocalityLoadBalancerSetting_Failover) {
	if f.From == f.To {
		p.invalidValue(field+".to", f.To, "must be another region than from")
	}
	for _, end := range []struct{ name, region string }{{"from", f.From}, {"to", f.To}} {
		if strings.ContainsAny(end.region, "/*") {
			p.invalidValue(field+"."+end.name, end.region, "must be a region alone, without zone or wildcard")
		}
	}
}
