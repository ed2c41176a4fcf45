package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"
	"sigs.k8s.io/yaml"
)

func (p *problems) locality(field string, l *networking.LocalityLoadBalancerSetting, o *networking.OutlierDetection) {
	if len(l.GetDistribute()) > 0 && len(l.GetFailover()) > 0 {
		p.forbidden(field+".failover", "cannot stand beside distribute: shares are fixed, or follow what fails")
	}
	from := localities{}
	for i, d := range l.GetDistribute() {
		at := indexField(field+".distribute", i)
		p.overlap(at+".from", d.From, from)
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
	seen := localities{}
	for _, locality := range slices.Sorted(maps.Keys(to)) {
		at := keyField(field, locality)
		p.overlap(at, locality, seen)
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
func (p *problems) overlap(field, locality string, seen localities) {
	star := strings.Index(locality, "*")
	steps := strings.Split(locality, "/")
	if star >= 0 && star < len(locality)-1 || slices.Contains(steps, "") || len(steps) > 3 {
		p.invalidValue(field, locality, "must be region, region/zone or region/zone/subzone, perhaps ending with *")
		return
	}
	if other, overlaps := seen.add(locality); overlaps {
		p.duplicate(field, "overlaps with "+other)
	}
}

// localities are those given so far and all that they are within, without the
// star that may end them.
type localities map[string]givenLocality

type givenLocality struct {
	text  string // as it was given
	whole bool   // not only a part of it
}

// add takes a locality in, unless it overlaps with one that is there.
func (l localities) add(locality string) (other string, overlaps bool) {
	own := strings.TrimSuffix(strings.TrimSuffix(locality, "*"), "/")
	if there, ok := l[own]; ok {
		return there.text, true
	}
	around := []string{""}
	for i, c := range own {
		if c == '/' {
			around = append(around, own[:i])
		}
	}
	for _, outer := range around {
		if there := l[outer]; there.whole {
			return there.text, true
		}
	}
	for _, outer := range around {
		if _, ok := l[outer]; !ok {
			l[outer] = givenLocality{text: locality}
		}
	}
	l[own] = givenLocality{locality, true}
	return "", false
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

// ParseLocalities reads the setting of a mesh: what a DestinationRule may have
// under localityLbSetting. The error says what must be so.
func ParseLocalities(text string) (*networking.LocalityLoadBalancerSetting, error) {
	out := &networking.LocalityLoadBalancerSetting{}
	body, err := yaml.YAMLToJSONStrict([]byte(text))
	if err == nil {
		err = protojson.Unmarshal(body, out)
	}
	if err != nil {
		return nil, fmt.Errorf("must be a setting such as {failover: [{from: us-east, to: eu-west}]}: %w", err)
	}
	var p problems
	p.locality("", out, &networking.OutlierDetection{})
	if len(p.list) > 0 {
		return nil, fmt.Errorf("%s %s", strings.TrimPrefix(p.list[0].Field, "."), p.list[0].Message)
	}
	return out, nil
}

// EachLoadBalancer hands over the load balancers that a DestinationRule names, nil
// among them.
func EachLoadBalancer(rule *networking.DestinationRule, hand func(*networking.LoadBalancerSettings)) {
	of := func(policy *networking.TrafficPolicy) {
		hand(policy.GetLoadBalancer())
		for _, own := range policy.GetPortLevelSettings() {
			hand(own.GetLoadBalancer())
		}
	}
	of(rule.GetTrafficPolicy())
	for _, s := range rule.GetSubsets() {
		of(s.GetTrafficPolicy())
	}
}
