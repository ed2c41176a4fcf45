package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the server's own metrics.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	watchers prometheus.Gauge

	series sync.Map // requestLabels to *requestSeries: faster than WithLabelValues
}

// requestLabels have few values each.
type requestLabels struct {
	method, route string
	code          int
}

type requestSeries struct {
	count prometheus.Counter
	took  prometheus.Observer
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pilot_http_requests_total",
			Help: "Requests answered, by method, route pattern and status code.",
		}, []string{"method", "route", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pilot_http_request_duration_seconds",
			Help:    "Time from the head of a request to the end of its answer; a watch counts with its whole life.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}, []string{"method", "route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pilot_http_requests_in_flight",
			Help: "Requests being answered now, watches included.",
		}),
		watchers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pilot_watchers",
			Help: "Watches of config objects running now.",
		}),
	}
	reg.MustRegister(m.requests, m.duration, m.inFlight, m.watchers)
	return m
}

func (m *metrics) request(method, route string, code int, took time.Duration) {
	labels := requestLabels{knownMethod(method), route, code}
	found, ok := m.series.Load(labels)
	if !ok {
		found, _ = m.series.LoadOrStore(labels, &requestSeries{
			m.requests.WithLabelValues(labels.method, route, strconv.Itoa(code)),
			m.duration.WithLabelValues(labels.method, route),
		})
	}
	series := found.(*requestSeries)
	series.count.Inc()
	series.took.Observe(took.Seconds())
}

// knownMethod returns a label value for a method, so that clients cannot invent
// values.
func knownMethod(method string) string {
	for _, known := range methods {
		if method == known {
			return method
		}
	}
	return "other"
}

func (m *metrics) handler(reg *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}
