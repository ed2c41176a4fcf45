package ir

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// A locality is region/zone/sub-zone. The last parts may be missing.

// Localities say which endpoints of a cluster callers prefer, for callers in any
// locality. If Distribute is set, the other fields have no effect.
type Localities struct {
	// Distribute applies the first entry whose From contains the caller. Callers in
	// no entry have no preference.
	Distribute []Distribution
	// Closer prefers closer endpoints, and falls back to others when those fail.
	// The order is the same sub-zone, zone and region, then the region that
	// Takeover names.
	Closer   bool
	Takeover []Takeover
	// Labels prefer endpoints that share the caller's values of more of the first
	// labels. NAME=VALUE requires that value for all callers. Labels count more
	// than Closer.
	Labels []string
	// ByDefault means that nobody configured it.
	ByDefault bool
}

// Distribution divides the requests of callers in From among localities, in
// percent. A star matches anything, and also the rest of a locality; so does a
// missing part. Other endpoints get no requests.
type Distribution struct {
	From string
	To   map[string]int
}

// Takeover names the region To that serves the callers of region From when From
// fails.
type Takeover struct{ From, To string }

// Order is the ranking of endpoints that Localities give for callers in one locality.
// If Shares is set, the other fields are not.
type Order struct {
	// Shares divide the requests among localities, as in a Distribution.
	Shares []Share `json:"shares,omitempty"`
	// Labels prefer endpoints that have more of the first labels.
	Labels []LabelValue `json:"labels,omitempty"`
	// Near is the locality of the callers, if it matters: closer endpoints come first.
	Near string `json:"near,omitempty"`
	// Next is the region preferred among other distant regions; "" is none.
	Next string `json:"next,omitempty"`
}

// Share is the weight of the requests that go to the endpoints in a locality.
type Share struct {
	To     string `json:"to"`
	Weight int    `json:"weight"` // above 0
}

// LabelValue is a label that an endpoint must have. With an empty Value the
// endpoint must not have it.
type LabelValue struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// For returns the order for callers from a locality that have these labels. The locality is
// "" if unknown. Nil means no order: all endpoints are alike.
func (l *Localities) For(from string, labels map[string]string) *Order {
	if len(l.Distribute) > 0 {
		return l.shares(from)
	}
	out := &Order{}
	for _, label := range l.Labels {
		name, value, given := strings.Cut(label, "=")
		if !given {
			value = labelAt(name, labels, from)
		}
		out.Labels = append(out.Labels, LabelValue{name, value})
	}
	if l.Closer && from != "" {
		out.Near = from
		region, _, _ := strings.Cut(from, "/")
		if at := slices.IndexFunc(l.Takeover, func(t Takeover) bool { return t.From == region }); at >= 0 {
			out.Next = l.Takeover[at].To
		}
	}
	if len(out.Labels) == 0 && out.Near == "" {
		return nil
	}
	return out
}

func (l *Localities) shares(from string) *Order {
	at := slices.IndexFunc(l.Distribute, func(d Distribution) bool { return within(from, d.From) })
	if at < 0 {
		return nil
	}
	out := &Order{}
	to := l.Distribute[at].To
	for _, locality := range slices.Sorted(maps.Keys(to)) {
		out.Shares = append(out.Shares, Share{locality, to[locality]})
	}
	return out
}

// String returns a text that is the same for equal orders and does not contain "|".
func (o *Order) String() string {
	if o == nil {
		return ""
	}
	text, _ := json.Marshal(o) // Strings and numbers always encode.
	return strings.ReplaceAll(string(text), "|", `\u007c`)
}

// maxPriority is the highest priority of an Envoy.
const maxPriority = 127

// Arranged returns the endpoints that get requests, with their priorities and
// shares. A nil Order returns the endpoints unchanged.
func (o *Order) Arranged(endpoints []Endpoint) []Endpoint {
	switch {
	case o == nil:
		return endpoints
	case len(o.Shares) > 0:
		return o.shared(endpoints)
	}
	ranks := make([]int, len(endpoints))
	for i, e := range endpoints {
		ranks[i] = o.byLabels(e)*ranksByLocality + o.byLocality(e)
	}
	inUse := slices.Compact(slices.Sorted(slices.Values(ranks)))
	out := slices.Clone(endpoints)
	for i := range out {
		at, _ := slices.BinarySearch(inUse, ranks[i])
		out[i].Priority = min(at, maxPriority)
	}
	return out
}

// byLabels ranks an endpoint by its labels. It returns 0 for an endpoint that has
// all of them.
func (o *Order) byLabels(e Endpoint) int {
	for i, l := range o.Labels {
		if labelAt(l.Name, e.Labels, e.Zone) != l.Value {
			return len(o.Labels) - i
		}
	}
	return 0
}

// Distances of an endpoint, closest first.
const (
	sameLocality = iota
	sameZone
	sameRegion
	nextRegion
	otherRegion
	ranksByLocality
)

func (o *Order) byLocality(e Endpoint) int {
	if o.Near == "" {
		return sameLocality
	}
	near, at := stepsOf(o.Near), stepsOf(e.Zone)
	switch {
	case near == at:
		return sameLocality
	case near[0] == at[0] && near[1] == at[1]:
		return sameZone
	case near[0] == at[0]:
		return sameRegion
	case o.Next == "" || at[0] == o.Next:
		return nextRegion
	}
	return otherRegion
}

// shared gives the endpoints of each locality the weight of the share that the
// locality belongs to. Localities that belong to the same share divide it by the
// weights of their endpoints.
func (o *Order) shared(endpoints []Endpoint) []Endpoint {
	shareOf, weights := map[string]int{}, map[string]uint64{}
	together := map[int]uint64{}
	for _, e := range endpoints {
		at, known := shareOf[e.Zone]
		if !known {
			at = slices.IndexFunc(o.Shares, func(s Share) bool { return within(e.Zone, s.To) })
			shareOf[e.Zone] = at
		}
		weights[e.Zone] += uint64(max(e.Weight, 1))
		together[at] += uint64(max(e.Weight, 1))
	}
	divided := slices.ContainsFunc(slices.Collect(maps.Keys(weights)), func(zone string) bool {
		return shareOf[zone] >= 0 && weights[zone] != together[shareOf[zone]]
	})
	var out []Endpoint
	for _, e := range endpoints {
		at := shareOf[e.Zone]
		if at < 0 {
			continue
		}
		e.Share = o.Shares[at].Weight
		if divided {
			part := float64(weights[e.Zone]) / float64(together[at])
			e.Share = max(1, int(math.Round(float64(e.Share)*wholeShare*part)))
		}
		out = append(out, e)
	}
	return out
}

// wholeShare is one percent, in the unit in which localities divide a share.
const wholeShare = 10_000

// within reports whether a locality is in another one, which may contain stars.
func within(inner, outer string) bool {
	at := stepsOf(inner)
	for i, step := range stepsOf(outer) {
		if step != "*" && step != at[i] && (step != "" || i == 0) {
			return false
		}
	}
	return true
}

func stepsOf(locality string) [3]string {
	var out [3]string
	copy(out[:], strings.SplitN(locality, "/", len(out)))
	return out
}

// localityLabels maps the label names of Kubernetes and Istio to the parts of a
// locality.
var localityLabels = map[string]int{
	"topology.kubernetes.io/region": 0, "topology.kubernetes.io/zone": 1, "topology.istio.io/subzone": 2,
}

// labelAt returns the value of a label for a workload in a locality.
func labelAt(name string, labels map[string]string, locality string) string {
	step, ofLocality := localityLabels[name]
	if !ofLocality {
		return labels[name]
	}
	return cmp.Or(labels[name], stepsOf(locality)[step])
}

// maxOrder limits the text of an order, in bytes. Proxies send it to ask for
// endpoints.
const maxOrder = 16 << 10

// ParseOrder parses the text of an order. It returns nil for an invalid text.
func ParseOrder(text string) *Order {
	if len(text) > maxOrder {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	order := &Order{}
	if err := decoder.Decode(order); err != nil || decoder.InputOffset() != int64(len(text)) || order.check() != nil {
		return nil
	}
	return order
}

func (o *Order) check() error {
	var f faults
	sum := 0
	for _, s := range o.Shares {
		f.require(s.Weight > 0 && s.Weight <= math.MaxInt32, "share of %s must be above 0, found %d", s.To, s.Weight)
		sum += s.Weight
	}
	f.require(len(o.Shares) == 0 || sum <= maxShares, "shares must be up to %d together, found %d", maxShares, sum)
	return f.err()
}

// maxShares keeps the weights of localities within Envoy's range.
const maxShares = 10_000

func (f *faults) localities(c *Cluster) {
	if c.Order == nil {
		return
	}
	f.require(c.Type != OriginalDestination, "original-destination clusters have no order of endpoints")
	f.require(len(c.Order.String()) <= maxOrder, "order of endpoints must be of up to %d bytes, found %d", maxOrder, len(c.Order.String()))
	if err := c.Order.check(); err != nil {
		f.require(false, "%v", err)
	}
}
