package authn

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/security/identity"
)

// metrics counts proofs by their method, and failures.
type metrics struct{ proofs *prometheus.CounterVec }

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pilot_authentications_total",
		Help: "Requests by how their sender was proved; failed for those that proved nobody, undecided for those whose token could not be verified because the keys of its issuer could not be fetched, and slowed for those that were not looked at because too many wrong tokens came from their address.",
	}, []string{"method"})}
	if reg != nil {
		reg.MustRegister(m.proofs)
	}
	return m
}

func (m *metrics) count(who identity.Identity, err error) {
	method := string(who.By)
	if f, ok := err.(*Failure); ok {
		switch {
		case f.Undecided:
			method = "undecided"
		case f.RetryAfter > 0:
			method = "slowed"
		default:
			method = "failed"
		}
	}
	m.proofs.WithLabelValues(method).Inc()
}
