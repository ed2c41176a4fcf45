package schema

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// HealthCheckAnnotation is the annotation of a ServiceEntry that says how proxies
// probe its instances, in YAML. It has one of http, tcp and grpc:
//
//	{http: {path: /healthz, host: a.example}, interval: 5s, timeout: 1s, unhealthyThreshold: 2, healthyThreshold: 1}
//
// These times and thresholds are the defaults. An HTTP probe must be answered with
// 200. On ports that do not speak the protocol, proxies only connect.
const HealthCheckAnnotation = "pilot-api/health-check"

// HealthCheck is a valid health check. Exactly one of HTTP, TCP and GRPC is set.
type HealthCheck struct {
	HTTP *HTTPHealthCheck `json:"http"`
	TCP  *struct{}        `json:"tcp"`
	GRPC *GRPCHealthCheck `json:"grpc"`

	// Interval is the time between probes, Timeout the time within which an answer
	// must arrive.
	Interval metav1.Duration `json:"interval"`
	Timeout  metav1.Duration `json:"timeout"`
	// UnhealthyThreshold is the number of failures in a row after which an instance
	// is left out, HealthyThreshold the number of successes after which it returns.
	UnhealthyThreshold int `json:"unhealthyThreshold"`
	HealthyThreshold   int `json:"healthyThreshold"`
}

// HTTPHealthCheck is a GET request.
type HTTPHealthCheck struct {
	Path string `json:"path"`
	Host string `json:"host"` // "" is the name of the service
}

// GRPCHealthCheck asks grpc.health.v1 for a service, "" for the server.
type GRPCHealthCheck struct {
	Service string `json:"service"`
}

// ParseHealthCheck parses the value of the annotation. The error says what is
// required.
func ParseHealthCheck(text string) (*HealthCheck, error) {
	out := &HealthCheck{
		Interval: metav1.Duration{Duration: 5 * time.Second}, Timeout: metav1.Duration{Duration: time.Second},
		UnhealthyThreshold: 2, HealthyThreshold: 1,
	}
	err := CheckAliases([]byte(text))
	if err == nil {
		err = yaml.UnmarshalStrict([]byte(text), out)
	}
	if err != nil {
		return nil, fmt.Errorf("must be a health check such as {http: {path: /healthz}, interval: 5s}: %w", err)
	}
	return out, out.check()
}

func (c *HealthCheck) check() error {
	ways := 0
	for _, set := range []bool{c.HTTP != nil, c.TCP != nil, c.GRPC != nil} {
		if set {
			ways++
		}
	}
	switch {
	case ways != 1:
		return errors.New("must have exactly one of http, tcp and grpc")
	case c.HTTP != nil && (!strings.HasPrefix(c.HTTP.Path, "/") || strings.ContainsAny(c.HTTP.Path, "\x00\r\n ")):
		return fmt.Errorf("http.path must be a path such as /healthz, found %q", c.HTTP.Path)
	case c.HTTP != nil && strings.ContainsAny(c.HTTP.Host, "\x00\r\n "):
		return fmt.Errorf("http.host must be a host name, found %q", c.HTTP.Host)
	case c.Interval.Duration < time.Millisecond || c.Interval.Duration >= endOfTime:
		return fmt.Errorf("interval must be at least 1ms, found %v", c.Interval.Duration)
	case c.Timeout.Duration < time.Millisecond || c.Timeout.Duration >= endOfTime:
		return fmt.Errorf("timeout must be at least 1ms, found %v", c.Timeout.Duration)
	case !isThreshold(c.UnhealthyThreshold):
		return fmt.Errorf("unhealthyThreshold must be 1 to 1000, found %d", c.UnhealthyThreshold)
	case !isThreshold(c.HealthyThreshold):
		return fmt.Errorf("healthyThreshold must be 1 to 1000, found %d", c.HealthyThreshold)
	}
	return nil
}

func isThreshold(n int) bool { return n >= 1 && n <= 1000 }

// checkHealthCheck checks the annotation, which has a meaning only on a
// ServiceEntry.
func (d *candidate) checkHealthCheck() {
	text, given := d.meta.Annotations[HealthCheckAnnotation]
	if !given {
		return
	}
	at := keyField("metadata.annotations", HealthCheckAnnotation)
	if d.kind.Kind != "ServiceEntry" {
		d.warn(at, "has no effect on a "+d.kind.Kind+": write it on the ServiceEntry")
		return
	}
	if _, err := ParseHealthCheck(text); err != nil {
		d.invalid(at, err.Error())
	}
}
