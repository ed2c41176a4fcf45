package ca

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct{ requests *prometheus.CounterVec }

// newMetrics registers the metrics of a CA; without a registry they are dropped.
func newMetrics(registry prometheus.Registerer, c *CA) *metrics {
	with := promauto.With(registry)
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pilot_ca_issuer_end_timestamp_seconds",
		Help: "When the certificate that signs those of workloads ends, in seconds since 1970; 0 if this server cannot sign.",
	}, c.issuerEnd)
	return &metrics{with.NewCounterVec(prometheus.CounterOpts{
		Name: "pilot_ca_requests_total",
		Help: "Requests for certificates of workloads by result: issued, refused, too_many or no_issuer.",
	}, []string{"result"})}
}

func (c *CA) issuerEnd() float64 {
	t := c.trust.Load()
	if t == nil || t.Issuer == nil {
		return 0
	}
	return float64(t.Issuer.Chain[0].NotAfter.Unix())
}

func (m *metrics) count(err error) {
	result := "issued"
	switch {
	case err == nil:
	case errors.Is(err, ErrTooMany):
		result = "too_many"
	case errors.Is(err, ErrNoIssuer):
		result = "no_issuer"
	default:
		result = "refused"
	}
	m.requests.WithLabelValues(result).Inc()
}
