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
		p.forbidden(field+".failover", "cannot be given together with distribute: shares are fixed, or follow what fails")
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
		p.invalid(field, fmt.Sprintf("the shares must sum to 100, found %d", sum))
	}
}

// overlap checks a locality, region/zone/subzone, by itself and against those
// before it. A star at the end stands for all localities that begin like this; so
// does a missing rest.
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

// localities holds the localities given so far and all that contain them, without a
// final star.
type localities map[string]givenLocality

type givenLocality struct {
	text  string // as given
	whole bool   // not only a container of one
}

// add adds a locality, unless it overlaps with an existing one.
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

// ParseLocalities parses the setting of a mesh, which has the fields of a
// DestinationRule's localityLbSetting. The error says what is required.
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

// EachLoadBalancer calls hand with all load balancers of a DestinationRule,
// including nil ones.
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
