package ads

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pilot-api/pilot-api/discovery"
)

// metrics counts responses and NACKs of streams by transport and by type, which has
// the name of its service in the protocol.
type metrics struct{ pushes, bytes, nacks *prometheus.CounterVec }

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		c := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{Name: "pilot_xds_" + name, Help: help}, []string{"type", "transport"})
		for _, t := range discovery.Services() {
			for _, over := range []discovery.Transport{discovery.OverDelta, discovery.OverADS, discovery.OverGRPC} {
				c.WithLabelValues(t, string(over))
			}
		}
		return c
	}
	return &metrics{
		pushes: counter("pushes_total", "Responses sent over streams."),
		bytes:  counter("push_bytes_total", "Bytes of the responses sent over streams."),
		nacks:  counter("nacks_total", "Responses that proxies refused."),
	}
}

// streamMetrics are the metrics of one transport.
type streamMetrics struct {
	*metrics
	over string
}

func (m *metrics) of(over discovery.Transport) streamMetrics { return streamMetrics{m, string(over)} }

func (m streamMetrics) sent(typeURL string, bytes int) {
	m.pushes.WithLabelValues(discovery.ServiceOf(typeURL), m.over).Inc()
	m.bytes.WithLabelValues(discovery.ServiceOf(typeURL), m.over).Add(float64(bytes))
}

// received counts a NACK. The type may be one that is not served.
func (m streamMetrics) received(r discovery.Request) {
	if label := discovery.ServiceOf(r.TypeURL); label != "" && r.Refused != nil {
		m.nacks.WithLabelValues(label, m.over).Inc()
	}
}
