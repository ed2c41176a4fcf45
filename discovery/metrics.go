package discovery

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/mesh"
)

// metrics measures the steps from objects to answers. Package server counts polls.
type metrics struct {
	generations prometheus.Counter
	refusals    prometheus.Counter
	publish     prometheus.Histogram
	compile     prometheus.Histogram
}

func newMetrics(p *Publisher) *metrics {
	const prefix = "pilot_discovery_"
	with := promauto.With(p.opts.Registry)
	gauge := func(name, help string, of func() int) {
		with.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + name, Help: help}, func() float64 { return float64(of()) })
	}
	gauge("revision", "Store revision of the published configuration.", func() int { return int(p.Revision()) })
	gauge("views", "Different configurations kept ready.", func() int { views, _ := p.fleet.Size(); return views })
	gauge("proxies", "Proxies remembered.", func() int { _, proxies := p.fleet.Size(); return proxies })
	gauge("unproved_proxies", "Node ids that polled from beside no known workload and did not come back: nobody waits for them.", p.fleet.UnprovedCount)
	gauge("refusing_proxies", "Proxies that refuse something of what they are answered.", p.fleet.RefusingCount)
	gauge("disconnected_proxies", "Proxies that were connected and are not now, and are still known.", func() int { return len(p.Absent()) })
	gauge("lost_proxies", "Those of the disconnected proxies that did not end their connection themselves.", p.lostCount)
	gauge("problems", "Things that the published configuration could not honour.", p.problemCount)
	gauge("results", "Results that are kept, of which configurations are made.", p.results.Used)
	gauge("max_results", "How many results are kept at most, before new proxies are refused a configuration; 0 for no bound.", p.results.Most)
	histogram := func(name, help string) prometheus.Histogram {
		return with.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		})
	}
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help})
	}
	p.checks.done = with.NewCounterVec(prometheus.CounterOpts{
		Name: "pilot_write_checks_total",
		Help: "Written objects that were looked at among all others, by outcome: busy ones were answered without warnings.",
	}, []string{"outcome"})
	for _, outcome := range []string{checked, checkBusy, checkFailed} {
		p.checks.done.WithLabelValues(outcome)
	}
	p.convergence.Took = with.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + "convergence_seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14),
		Help: "From the acknowledged write to its acceptance by the last proxy that it concerns, by transport; over v1 until it was fetched.",
	}, []string{"transport"})
	p.convergence.Abandoned = with.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "convergence_abandoned_total",
		Help: "Changes that were followed no more before the last proxy had accepted, as too many others were under way.",
	}, []string{"transport"})
	for _, over := range transports {
		p.convergence.Abandoned.WithLabelValues(string(over))
	}
	if p.opts.Registry != nil {
		p.opts.Registry.MustRegister(connected{p, prometheus.NewDesc(prefix+"connected_proxies",
			"Proxies on a stream, or that polled lately, by transport and state: the worst of their types.", []string{"transport", "state"}, nil)},
			expiries{&p.expiries, prometheus.NewDesc("pilot_secret_expiry_timestamp_seconds",
				"When the first certificate of a Secret expires, in seconds since 1970, of the 1000 Secrets that expire first.", []string{"namespace", "name"}, nil)})
	}
	return &metrics{
		generations: counter("generations_total", "Configurations published."),
		refusals:    counter("refusals_total", "Times that the proxies of a view, or all, kept the last good configuration."),
		publish:     histogram("publish_seconds", "From objects to published configuration."),
		compile:     histogram("compile_seconds", "Compiling one view."),
	}
}

var transports = []feedback.Transport{feedback.OverDelta, feedback.OverADS, feedback.OverREST, feedback.OverV1, feedback.OverGRPC}

// connected counts proxies on request.
type connected struct {
	publisher *Publisher
	desc      *prometheus.Desc
}

func (c connected) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

func (c connected) Collect(to chan<- prometheus.Metric) {
	c.publisher.convergence.Dismiss()
	type labels struct {
		over  feedback.Transport
		state feedback.SyncState
	}
	counts := map[labels]int{}
	_ = c.publisher.recoverPanic("metrics", func() error {
		c.publisher.fleet.EachState(c.publisher.Revision(), func(one feedback.ProxySyncState) { counts[labels{one.Transport, one.State}]++ }, feedback.SyncVisitor{})
		return nil
	})
	for _, over := range transports {
		states := []feedback.SyncState{feedback.Synced, feedback.Sent, feedback.Stale, feedback.Rejected}
		if over == feedback.OverV1 {
			states = []feedback.SyncState{feedback.Fetched, feedback.Stale}
		}
		for _, state := range states {
			to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(counts[labels{over, state}]), string(over), string(state))
		}
	}
}

// maxExpiries bounds the Secrets of which the expiry is a metric.
const maxExpiries = 1000

// expiries are when Secrets expire.
type expiries struct {
	secrets *mesh.Expiries
	desc    *prometheus.Desc
}

func (e expiries) Describe(to chan<- *prometheus.Desc) { to <- e.desc }

func (e expiries) Collect(to chan<- prometheus.Metric) {
	for _, one := range e.secrets.First(maxExpiries) {
		to <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, one.Timestamp(), one.Secret.Namespace, one.Secret.Name)
	}
}
