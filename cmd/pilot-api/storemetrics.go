package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/etcd/register"
)

// registerStoreMetrics registers metrics of the store and of the cache over it.
func registerStoreMetrics(reg prometheus.Registerer, b backend, cached *cache.Cache, lag *cache.Probe) {
	gauge := func(name, help string, value func() float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	counter := func(name, help string, value func() float64) {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
	}
	counter("pilot_cache_relists_total", "How often all objects were listed anew because changes had been missed.",
		func() float64 { return float64(cached.Relists()) })
	gauge("pilot_cache_lag_revisions", "Revisions between the cache and the newest one that the store has told.",
		func() float64 { return float64(lag.Lag().Revisions) })
	gauge("pilot_cache_lag_seconds", "For how long the cache has been known to lack a change of the store.",
		func() float64 { return lag.Lag().Behind.Seconds() })
	gauge("pilot_store_unreadable_values", "Stored values that cannot be read, and so are not in force.",
		func() float64 { return float64(len(cached.Unreadable(store.Scope{}))) })
	gauge("pilot_store_up", "1 when the store told its revision when asked last, a second ago or so.",
		func() float64 { return oneIf(storeAnswers(lag.Lag()) == nil) })
	if b.embedded == nil {
		registerAlarms(reg, b.alarms)
		return
	}
	usage := func(value func(embedded.Usage) int64) func() float64 {
		return func() float64 { return float64(value(b.embedded.Usage())) }
	}
	gauge("pilot_store_quota_bytes", "What the embedded etcd may store (--quota-bytes).",
		usage(func(u embedded.Usage) int64 { return u.Quota }))
	gauge("pilot_store_used_bytes", "What the embedded etcd stores, history included; compare with the quota.",
		usage(func(u embedded.Usage) int64 { return u.InUse }))
	gauge("pilot_store_live_bytes", "The part of it that is present state.",
		usage(func(u embedded.Usage) int64 { return u.Live }))
	gauge("pilot_store_history_bytes", "The part of it that is history, which gives way when room is needed.",
		usage(func(u embedded.Usage) int64 { return u.History }))
	gauge("pilot_store_file_bytes", "Size of the database file, with holes that are used again.",
		usage(func(u embedded.Usage) int64 { return u.File }))
	gauge("pilot_store_oldest_revision", "The oldest revision that can still be read or watched from.",
		usage(func(u embedded.Usage) int64 { return u.OldestRevision }))
	gauge("pilot_store_disk_free_bytes", "What is left on the disk of the data folder.",
		usage(func(u embedded.Usage) int64 { return u.DiskFree }))
	counter("pilot_store_compactions_total", "Times that history was forgotten.",
		usage(func(u embedded.Usage) int64 { return u.Compactions }))
	counter("pilot_store_defragmentations_total", "Times that the database file was written anew.",
		usage(func(u embedded.Usage) int64 { return u.Defragmentations }))
}

// registerReplicaMetrics registers metrics of this replica and of those that share its
// etcd.
func registerReplicaMetrics(reg prometheus.Registerer, r *register.Register) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pilot_replica_cut_off", Help: "1 when etcd has not confirmed this replica's entry in the register for longer than that lasts: it is missing to the others.",
	}, func() float64 { _, is := r.CutOff(); return oneIf(is) }))
	for state, count := range map[string]func() int64{"present": r.There, "missing": r.Missing} {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "pilot_other_replicas",
			Help:        "The other replicas over the same etcd; missing are those that did not leave, and that nothing is heard of.",
			ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return float64(count()) }))
	}
}

// registerAlarms registers the alarms of an external etcd.
func registerAlarms(reg prometheus.Registerer, alarms *etcd.Alarms) {
	for name, raised := range map[string]func() bool{"NOSPACE": alarms.NoSpace, "CORRUPT": alarms.Corrupt} {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "pilot_store_alarm",
			Help:        "1 when the external etcd has raised the alarm, and takes no writes.",
			ConstLabels: prometheus.Labels{"alarm": name},
		}, func() float64 { return oneIf(raised()) }))
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
