package schema

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
)

// DestinationPolicy is the spec of the kind DestinationPolicy. It says how
// connections to a service, or to one version of it, are balanced and limited.
type DestinationPolicy struct {
	// Destination with labels means exactly the version that routes name by
	// the same labels.
	Destination *IstioService `json:"destination"`
	// Source, if set, limits the policy to callers with its labels.
	Source         *IstioService   `json:"source"`
	LoadBalancing  *LoadBalancing  `json:"loadBalancing"`
	CircuitBreaker *CircuitBreaker `json:"circuitBreaker"`
}

// LoadBalancing names the way to choose an instance.
type LoadBalancing struct {
	// Name is ROUND_ROBIN, LEAST_CONN or RANDOM; nil if only an ignored custom
	// policy is given.
	Name *string `json:"name"`
	// Custom is ignored. The field only records its presence.
	Custom *struct{} `json:"custom"`
}

// CircuitBreaker limits the load on a service.
type CircuitBreaker struct {
	SimpleCB *SimpleCircuitBreaker `json:"simpleCb"`
}

// SimpleCircuitBreaker has the limits; a number of 0 means Envoy's default.
type SimpleCircuitBreaker struct {
	MaxConnections               int32           `json:"maxConnections"`
	HTTPMaxPendingRequests       int32           `json:"httpMaxPendingRequests"`
	HTTPMaxRequests              int32           `json:"httpMaxRequests"`
	SleepWindow                  metav1.Duration `json:"sleepWindow"`
	HTTPConsecutiveErrors        int32           `json:"httpConsecutiveErrors"`
	HTTPDetectionInterval        metav1.Duration `json:"httpDetectionInterval"`
	HTTPMaxRequestsPerConnection int32           `json:"httpMaxRequestsPerConnection"`
	HTTPMaxEjectionPercent       int32           `json:"httpMaxEjectionPercent"`
	HTTPMaxRetries               int32           `json:"httpMaxRetries"`
}

func init() {
	register(&Kind{
		Group: configGroup, Version: "v1alpha2", OldVersions: []string{"v1alpha1"},
		Kind: "DestinationPolicy", Plural: "destinationpolicies", Singular: "destinationpolicy",
		Dashed: "destination-policy", ShortNames: []string{"dp"},
		Doc: "A DestinationPolicy says how callers use a service, or one version of it: " +
			"how they choose an instance, how many connections and requests they may have open, " +
			"and when an instance that fails is left alone for a while.",
		Columns: []Column{
			stringColumn("Destination", "The service or version that the policy is for.", func(d *DestinationPolicy) string { return d.Destination.String() }),
			stringColumn("Load-Balancing", "How an instance is chosen.", loadBalancingText),
			wideColumn("Source", "The callers that the policy is for.", func(d *DestinationPolicy) string { return d.Source.String() }),
		},
		selectable: selectableService(func(d *DestinationPolicy) *IstioService { return d.Destination }),
		spec:       inJSON[DestinationPolicy](),
		check:      checkAs(checkDestinationPolicy),
	})
}

func loadBalancingText(d *DestinationPolicy) string {
	if d.LoadBalancing == nil || d.LoadBalancing.Name == nil {
		return ""
	}
	return *d.LoadBalancing.Name
}

func checkDestinationPolicy(d *DestinationPolicy) diag.List {
	var p problems
	p.service("spec.destination", d.Destination)
	p.service("spec.source", d.Source)
	if lb := d.LoadBalancing; lb != nil && lb.Name == nil && lb.Custom == nil {
		p.required("spec.loadBalancing", "must set name: ROUND_ROBIN, LEAST_CONN or RANDOM")
	}
	if d.CircuitBreaker != nil && d.CircuitBreaker.SimpleCB != nil {
		p.circuitBreaker("spec.circuitBreaker.simpleCb", d.CircuitBreaker.SimpleCB)
	}
	return p.list
}

// circuitBreaker checks the limits. Pilot used the two durations to decide whether
// outlier detection is configured at all, and compared whole seconds.
func (p *problems) circuitBreaker(field string, cb *SimpleCircuitBreaker) {
	for name, d := range map[string]metav1.Duration{
		".sleepWindow": cb.SleepWindow, ".httpDetectionInterval": cb.HTTPDetectionInterval,
	} {
		if d.Duration < time.Second {
			p.warn(field+name, "has no effect under 1s")
		}
	}
	if cb.HTTPMaxRetries < 0 {
		p.warn(field+".httpMaxRetries", "a negative number has no effect")
	}
}
