package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pilot-api/pilot-api/credential/rotation"
)

// registerCertificateMetrics registers metrics of the certificate files on this machine.
func registerCertificateMetrics(to prometheus.Registerer, files *rotation.Follower) {
	with := promauto.With(to)
	with.NewCounterFunc(prometheus.CounterOpts{
		Name: "pilot_certificate_files_taken_total",
		Help: "How often other certificate files were taken into use, the first time included.",
	}, func() float64 { return float64(files.Taken()) })
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pilot_certificate_files_problems",
		Help: "Names whose certificate files have something wrong; the last good ones stay in use.",
	}, func() float64 { return float64(problemsOf(files)) })
	to.MustRegister(expiries{files, prometheus.NewDesc("pilot_certificate_files_expiry_timestamp_seconds",
		"When the first certificate ends that is in use from the files of a name, in seconds since 1970.", []string{"name"}, nil)})
}

func problemsOf(files *rotation.Follower) (n int) {
	for _, s := range files.States() {
		if s.Problem != "" {
			n++
		}
	}
	return n
}

// expiries is a collector of the expiry times of certificates.
type expiries struct {
	follower *rotation.Follower
	desc     *prometheus.Desc
}

func (e expiries) Describe(to chan<- *prometheus.Desc) { to <- e.desc }

func (e expiries) Collect(to chan<- prometheus.Metric) {
	for name, s := range e.follower.States() {
		if end := s.Pair.Expiry(); !end.IsZero() {
			to <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(end.Unix()), name)
		}
	}
}
