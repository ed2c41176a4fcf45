package v3

import (
	"cmp"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previoushostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	previousprioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// These values are Istio's: how often Envoy looks for a host that it has not tried, and
// after how many attempts it uses other priorities.
const (
	hostSelections  = 5
	triesOfPriority = 2
)

var (
	untriedHosts      = fix(&previoushostsv3.PreviousHostsPredicate{})
	untriedPriorities = fix(&previousprioritiesv3.PreviousPrioritiesConfig{UpdateFrequency: triesOfPriority})
)

func retryPolicy(r *ir.Retry, hashed bool) *routev3.RetryPolicy {
	out := &routev3.RetryPolicy{
		RetryOn:       cmp.Or(r.On, envoy.RetryOn),
		NumRetries:    positive(r.Attempts),
		PerTryTimeout: positiveDuration(r.PerTryTimeout),
	}
	for _, code := range r.StatusCodes {
		out.RetriableStatusCodes = append(out.RetriableStatusCodes, uint32(code))
	}
	if r.BackOff > 0 {
		out.RetryBackOff = &routev3.RetryPolicy_RetryBackOff{BaseInterval: durationpb.New(r.BackOff)}
	}
	if r.OtherHosts == ir.Untried || r.OtherHosts == ir.UntriedUnlessHashed && !hashed {
		out.HostSelectionRetryMaxAttempts = hostSelections
		out.RetryHostPredicate = []*routev3.RetryPolicy_RetryHostPredicate{{
			Name:       "envoy.retry_host_predicates.previous_hosts",
			ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: untriedHosts},
		}}
	}
	if r.OtherLocalities {
		out.RetryPriority = &routev3.RetryPolicy_RetryPriority{
			Name:       "envoy.retry_priorities.previous_priorities",
			ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{TypedConfig: untriedPriorities},
		}
	}
	return out
}
