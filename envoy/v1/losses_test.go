package v1_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/diag"
	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/ir"
)

// TestLossesAreThoseOfTheAnswers: whatever configurations came before, they are the
// problems that spelling the answers finds.
func TestLossesAreThoseOfTheAnswers(t *testing.T) {
	parts := drawable()
	rapid.Check(t, func(rt *rapid.T) {
		var l v1.Losses
		var before diag.List
		for range 6 {
			config, ip := parts.draw(rt), rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2"}).Draw(rt, "ip")
			came := l.Advance(config, ip)
			now := l.List(anything)
			checkCame(rt, came, before, now)
			if again := l.Advance(config, ip); len(again) > 0 {
				rt.Errorf("on the way to the same: %q", texts(again))
			}
			before = now
			of := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "object")
			got := l.List(func(r diag.Ref) bool { return r.Name == of })
			for i, p := range got {
				if p.Object.Name != of || p.Code != diag.LostInV1 || slices.Contains(got[:i], p) {
					rt.Errorf("unasked for, not coded or told twice: %+v", p)
				}
			}
			if got, want := texts(got), texts(lost(config, ip, of)); !slices.Equal(got, want) {
				rt.Fatalf("%q, want %q", got, want)
			}
		}
	})
}

func anything(diag.Ref) bool { return true }

// checkCame wants what came with a configuration to be lost in it, and to have all that
// was not lost in the one before.
func checkCame(t *rapid.T, came, before, now diag.List) {
	for _, p := range came {
		if !slices.Contains(now, p) {
			t.Errorf("came, and is not there: %+v", p)
		}
	}
	for _, p := range now {
		if !slices.Contains(before, p) && !slices.Contains(came, p) {
			t.Errorf("is there, and neither was nor came: %+v", p)
		}
	}
}

// lost is what the answers have as problems of an object.
func lost(config *ir.Config, ip, of string) (all diag.List) {
	_, all = v1.Clusters(config)
	_, more := v1.Listeners(config, ip)
	all = append(all, more...)
	for _, t := range config.RouteTables {
		_, more := v1.Routes(t)
		all = append(all, more...)
	}
	return slices.DeleteFunc(all, func(p diag.Problem) bool { return p.Object.Name != of })
}

func texts(list diag.List) []string {
	var out []string
	for _, p := range list {
		out = append(out, p.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// partsToDraw are parts of configurations, some with losses; equal ones are the same.
type partsToDraw struct {
	clusters  []*ir.Cluster
	hosts     []*ir.VirtualHost
	listeners []*ir.Listener
}

func drawable() partsToDraw {
	var parts partsToDraw
	for i := range 9 {
		by := []diag.Ref{{Kind: "VirtualService", Namespace: "default", Name: string(rune('a' + i%3))}}
		c := &ir.Cluster{Name: fmt.Sprintf("c%d", i), Origins: by, Connections: ir.Connections{SameProtocol: i%2 == 0}}
		r := &ir.Route{Origins: by, Clusters: ir.Whole(c.Name)}
		if i%4 == 0 {
			r.StatPrefix = "numbers"
		}
		if i%4 == 1 {
			r.Fault = &ir.Fault{AbortPerMillion: ir.Million / 2, AbortStatus: 600 + i}
		}
		parts.clusters = append(parts.clusters, c)
		parts.hosts = append(parts.hosts, &ir.VirtualHost{Name: fmt.Sprintf("h%d", i), Domains: []string{"*"}, Routes: []*ir.Route{r}})
		parts.listeners = append(parts.listeners, &ir.Listener{IP: "0.0.0.0", Port: 80 + i, Origins: by, HTTP: &ir.HTTPListener{Table: fmt.Sprintf("%d", 80+i%2)}})
	}
	return parts
}

func (d partsToDraw) draw(rt *rapid.T) *ir.Config {
	c := &ir.Config{Clusters: someOf(rt, d.clusters), Listeners: someOf(rt, d.listeners)}
	for _, name := range someOf(rt, []*string{new("80"), new("81")}) {
		c.RouteTables = append(c.RouteTables, &ir.RouteTable{Name: *name, VirtualHosts: someOf(rt, d.hosts)})
	}
	return c
}

// someOf is a part of a list, in its order.
func someOf[T any](rt *rapid.T, all []*T) (some []*T) {
	for i, p := range all {
		if rapid.Bool().Draw(rt, fmt.Sprint(i)) {
			some = append(some, p)
		}
	}
	return some
}
