package discovery

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of the way from objects to answers. Polls are counted where they
// arrive, in package server.
type metrics struct {
	generations prometheus.Counter
	refusals    prometheus.Counter
	publish     prometheus.Histogram
	compile     prometheus.Histogram
}

func newMetrics(s *Publisher) *metrics {
	const prefix = "pilot_discovery_"
	with := promauto.With(s.opts.Registry)
	gauge := func(name, help string, of func() int) {
		with.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + name, Help: help}, func() float64 { return float64(of()) })
	}
	gauge("revision", "Store revision of the published configuration.", func() int { return int(s.Revision()) })
	gauge("views", "Different configurations kept ready.", func() int { views, _ := s.fleet.size(); return views })
	gauge("proxies", "Proxies remembered.", func() int { _, proxies := s.fleet.size(); return proxies })
	gauge("refusing_proxies", "Proxies that keep polling with an older version than they are answered.", s.fleet.refusing.count)
	gauge("problems", "Things that the published configuration could not honour.", s.problemCount)
	histogram := func(name, help string) prometheus.Histogram {
		return with.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		})
	}
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help})
	}
	return &metrics{
		generations: counter("generations_total", "Configurations published."),
		refusals:    counter("refusals_total", "Times that the proxies of a view, or all, kept the last good configuration."),
		publish:     histogram("publish_seconds", "From objects to published configuration."),
		compile:     histogram("compile_seconds", "Compiling one view."),
	}
}
