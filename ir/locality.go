package ir

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// A locality is region/zone/sub-zone, of which the last may be missing.

// Localities say which endpoints of a cluster callers are to prefer, whoever the
// callers are. Of Distribute and the rest one has effect: Distribute, if there is
// any.
type Localities struct {
	// Distribute is by where callers are: the first whose From they are in.
	// Callers in none have no preference.
	Distribute []Distribution
	// Closer endpoints come before others, and these when those fail: of the same
	// sub-zone, zone, region; then of the region that Takeover names.
	Closer   bool
	Takeover []Takeover
	// Labels: endpoints that have the caller's values of more of the first labels
	// come before others; NAME=VALUE is that value, whoever calls. They count more
	// than what is Closer.
	Labels []string
	// ByDefault: nobody asked for it.
	ByDefault bool
}

// Distribution gives callers in From so many in a hundred of their requests to
// localities. A star is any, and stands for the rest of a locality; so does
// nothing. Other endpoints get none.
type Distribution struct {
	From string
	To   map[string]int
}

// Takeover is the region that serves callers of another one when that fails.
type Takeover struct{ From, To string }

// Order is what Localities come to for callers at one place: what ranks the
// endpoints. Shares exclude the rest.
type Order struct {
	// Shares of the requests go to localities, as in a Distribution.
	Shares []Share `json:"shares,omitempty"`
	// Labels: endpoints that have more of the first come first.
	Labels []LabelValue `json:"labels,omitempty"`
	// Near is where the callers are, if that matters: closer endpoints come first.
	Near string `json:"near,omitempty"`
	// Next is the region that comes before other distant ones; "" is any.
	Next string `json:"next,omitempty"`
}

// Share of the requests goes to the endpoints in a locality.
type Share struct {
	To     string `json:"to"`
	Weight int    `json:"weight"` // above 0
}

// LabelValue is a label that an endpoint has, or with an empty Value has not.
type LabelValue struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// For is the order for callers at a place, "" when nobody knows where, who have
// these labels. Nil is no order: all endpoints are alike.
func (l *Localities) For(place string, labels map[string]string) *Order {
	if len(l.Distribute) > 0 {
		return l.shares(place)
	}
	out := &Order{}
	for _, label := range l.Labels {
		name, value, given := strings.Cut(label, "=")
		if !given {
			value = labelAt(name, labels, place)
		}
		out.Labels = append(out.Labels, LabelValue{name, value})
	}
	if l.Closer && place != "" {
		out.Near = place
		region, _, _ := strings.Cut(place, "/")
		if at := slices.IndexFunc(l.Takeover, func(t Takeover) bool { return t.From == region }); at >= 0 {
			out.Next = l.Takeover[at].To
		}
	}
	if len(out.Labels) == 0 && out.Near == "" {
		return nil
	}
	return out
}

func (l *Localities) shares(place string) *Order {
	at := slices.IndexFunc(l.Distribute, func(d Distribution) bool { return within(place, d.From) })
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

// String is the same for equal orders, and has no "|".
func (o *Order) String() string {
	if o == nil {
		return ""
	}
	text, _ := json.Marshal(o) // Texts and numbers cannot fail.
	return strings.ReplaceAll(string(text), "|", `\u007c`)
}

// maxPriority is the last that an Envoy counts to.
const maxPriority = 127

// Arranged are the endpoints with their priorities and shares, those that get
// requests. Nil leaves them as they are.
func (o *Order) Arranged(endpoints []Endpoint) []Endpoint {
	switch {
	case o == nil:
		return endpoints
	case len(o.Shares) > 0:
		return o.shared(endpoints)
	}
	ranks := make([]int, len(endpoints))
	for i, e := range endpoints {
		ranks[i] = o.byLabels(e)*ranksByPlace + o.byPlace(e)
	}
	inUse := slices.Compact(slices.Sorted(slices.Values(ranks)))
	out := slices.Clone(endpoints)
	for i := range out {
		at, _ := slices.BinarySearch(inUse, ranks[i])
		out[i].Priority = min(at, maxPriority)
	}
	return out
}

// byLabels is 0 for an endpoint that has all labels.
func (o *Order) byLabels(e Endpoint) int {
	for i, l := range o.Labels {
		if labelAt(l.Name, e.Labels, e.Zone) != l.Value {
			return len(o.Labels) - i
		}
	}
	return 0
}

// How far an endpoint may be.
const (
	samePlace = iota
	sameZone
	sameRegion
	nextRegion
	otherRegion
	ranksByPlace
)

func (o *Order) byPlace(e Endpoint) int {
	if o.Near == "" {
		return samePlace
	}
	near, at := stepsOf(o.Near), stepsOf(e.Zone)
	switch {
	case near == at:
		return samePlace
	case near[0] == at[0] && near[1] == at[1]:
		return sameZone
	case near[0] == at[0]:
		return sameRegion
	case o.Next == "" || at[0] == o.Next:
		return nextRegion
	}
	return otherRegion
}

// shared gives each locality the weight of the share that it has a part in. What
// several have together they divide by the weights of their endpoints.
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

// wholeShare is one in a hundred, where localities divide a share.
const wholeShare = 10_000

// within reports whether a place is in a locality, which may have a star.
func within(place, locality string) bool {
	at := stepsOf(place)
	for i, step := range stepsOf(locality) {
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

// placeLabels are the names of what a locality says, as Kubernetes and Istio have
// them.
var placeLabels = map[string]int{
	"topology.kubernetes.io/region": 0, "topology.kubernetes.io/zone": 1, "topology.istio.io/subzone": 2,
}

// labelAt is a label of who is at a place.
func labelAt(name string, labels map[string]string, place string) string {
	step, ofPlace := placeLabels[name]
	if !ofPlace {
		return labels[name]
	}
	return cmp.Or(labels[name], stepsOf(place)[step])
}

// maxOrder bounds what an order says, in bytes: proxies ask by it.
const maxOrder = 16 << 10

// ParseOrder reads the text of an order, nil for what is none.
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

// maxShares keeps the weights of localities in the range of an Envoy.
const maxShares = 10_000

func (f *faults) localities(c *Cluster) {
	if c.Order == nil {
		return
	}
	f.require(c.Type != OriginalDestination, "who goes where the connection went has no order of endpoints")
	f.require(len(c.Order.String()) <= maxOrder, "order of endpoints must be of up to %d bytes, found %d", maxOrder, len(c.Order.String()))
	if err := c.Order.check(); err != nil {
		f.require(false, "%v", err)
	}
}
