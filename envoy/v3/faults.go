package v3

import (
	"net/http"

	commonfaultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// The HTTP codes that v3 accepts for an abort.
const (
	minAbortStatus = 200
	maxAbortStatus = 599
)

// fault returns the config of the fault filter on a route, or nil if it does nothing.
func fault(r *ir.Route) (*faultv3.HTTPFault, diag.List) {
	f := r.Fault
	if f == nil {
		return nil, nil
	}
	out := &faultv3.HTTPFault{}
	if f.Delays() {
		out.Delay = &commonfaultv3.FaultDelay{
			FaultDelaySecifier: &commonfaultv3.FaultDelay_FixedDelay{FixedDelay: durationpb.New(f.Delay)},
			Percentage:         share(f.DelayPerMillion),
		}
	}
	abort, problems := faultAbort(r)
	out.Abort = abort
	if out.Delay == nil && out.Abort == nil {
		return nil, problems
	}
	return out, problems
}

func faultAbort(r *ir.Route) (*faultv3.FaultAbort, diag.List) {
	f := r.Fault
	if !f.Aborts() {
		return nil, nil
	}
	if f.AbortGRPC != nil {
		return &faultv3.FaultAbort{
			ErrorType:  &faultv3.FaultAbort_GrpcStatus{GrpcStatus: uint32(*f.AbortGRPC)},
			Percentage: share(f.AbortPerMillion),
		}, nil
	}
	status := f.AbortStatus
	var problems diag.List
	if f.AbortStatus < minAbortStatus || f.AbortStatus > maxAbortStatus {
		problems = diag.Warn(diag.NotHonoured, r.Origins,
			"Envoy v3 aborts with a status of %d to %d, found %d; it answers 503 instead", minAbortStatus, maxAbortStatus, f.AbortStatus)
		status = http.StatusServiceUnavailable
	}
	return &faultv3.FaultAbort{
		ErrorType:  &faultv3.FaultAbort_HttpStatus{HttpStatus: uint32(status)},
		Percentage: share(f.AbortPerMillion),
	}, problems
}

// share returns a fraction, in percent if that is a whole number.
func share(perMillion int) *typev3.FractionalPercent {
	const one = ir.Million / 100
	if perMillion%one == 0 {
		return &typev3.FractionalPercent{Numerator: uint32(perMillion / one), Denominator: typev3.FractionalPercent_HUNDRED}
	}
	return &typev3.FractionalPercent{Numerator: uint32(perMillion), Denominator: typev3.FractionalPercent_MILLION}
}
