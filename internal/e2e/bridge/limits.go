package bridge

type breakers struct {
	Default breaker `json:"default"`
}

// breaker has the same field names in v1 and v3.
type breaker struct {
	MaxConnections     int `json:"max_connections,omitempty"`
	MaxPendingRequests int `json:"max_pending_requests,omitempty"`
	MaxRequests        int `json:"max_requests,omitempty"`
	MaxRetries         int `json:"max_retries,omitempty"`
}

func (b *breakers) turn() object {
	return object{"thresholds": []breaker{b.Default}}
}

type outliers struct {
	Consecutive5xx     int   `json:"consecutive_5xx"`
	Interval           int64 `json:"interval_ms"`
	BaseEjectionTime   int64 `json:"base_ejection_time_ms"`
	MaxEjectionPercent int   `json:"max_ejection_percent"`
}

// turn adds v1's implicit settings: one host may always be ejected, and the time may grow
// without limit.
func (d *outliers) turn() object {
	const tenYears = 10 * 365 * 24 * 3600 * 1000
	o := object{"always_eject_one_host": true, "max_ejection_time": duration(tenYears)}
	if d.Consecutive5xx > 0 {
		o["consecutive_5xx"] = d.Consecutive5xx
	}
	if d.Interval > 0 {
		o["interval"] = duration(d.Interval)
	}
	if d.BaseEjectionTime > 0 {
		o["base_ejection_time"] = duration(d.BaseEjectionTime)
	}
	if d.MaxEjectionPercent > 0 {
		o["max_ejection_percent"] = d.MaxEjectionPercent
	}
	return o
}
