package schema

import "testing"

func TestDestinationPolicy(t *testing.T) {
	const breaker = "destination: {name: a}\ncircuitBreaker: {simpleCb: {sleepWindow: 30s, httpDetectionInterval: 10s, "
	testSpecs(t, "config.istio.io/v1alpha2", "DestinationPolicy", []specCase{
		{"least", "destination: {name: a}", nil},
		{"no destination", "loadBalancing: {name: RANDOM}", []string{"error FieldValueRequired spec.destination"}},
		{"labels", "destination: {name: a, labels: {version: v1}}\nsource: {name: b, labels: {version: v2}}", nil},
		{"bad source", "destination: {name: a}\nsource: {labels: {version: v2}}", []string{"error FieldValueRequired spec.source"}},
		{"custom", "destination: {name: a}\ncustom: {'@type': x}", []string{"warning NotHonoured spec.custom"}},

		{"load balancing", "destination: {name: a}\nloadBalancing: {name: LEAST_CONN}", nil},
		{"load balancing by number", "destination: {name: a}\nloadBalancing: {name: 0}", nil},
		{"load balancing by unknown number", "destination: {name: a}\nloadBalancing: {name: 3}", []string{"error FieldValueNotSupported spec.loadBalancing.name"}},
		{"load balancing in lower case", "destination: {name: a}\nloadBalancing: {name: random}", []string{"error FieldValueNotSupported spec.loadBalancing.name"}},
		{"load balancing by bool", "destination: {name: a}\nloadBalancing: {name: true}", []string{"error FieldValueTypeInvalid spec.loadBalancing.name"}},
		{"empty load balancing", "destination: {name: a}\nloadBalancing: {}", []string{"error FieldValueRequired spec.loadBalancing"}},
		{"custom load balancing", "destination: {name: a}\nloadBalancing: {custom: {}}", []string{"warning NotHonoured spec.loadBalancing.custom"}},

		{"empty circuit breaker", "destination: {name: a}\ncircuitBreaker: {}", nil},
		{"custom circuit breaker", "destination: {name: a}\ncircuitBreaker: {custom: {}}", []string{"warning NotHonoured spec.circuitBreaker.custom"}},
		{"all limits", breaker + "maxConnections: 1, httpMaxPendingRequests: 2, httpMaxRequests: 3, httpConsecutiveErrors: 4, httpMaxRequestsPerConnection: 5, httpMaxEjectionPercent: 100, httpMaxRetries: 6}}", nil},
		{"limits without durations", "destination: {name: a}\ncircuitBreaker: {simpleCb: {maxConnections: 1}}", []string{
			"error FieldValueRequired spec.circuitBreaker.simpleCb.httpDetectionInterval", "error FieldValueRequired spec.circuitBreaker.simpleCb.sleepWindow"}},
		{"short durations", "destination: {name: a}\ncircuitBreaker: {simpleCb: {sleepWindow: 999ms, httpDetectionInterval: 1s}}", []string{
			"warning NotHonoured spec.circuitBreaker.simpleCb.sleepWindow"}},
		{"durations under 1ms", "destination: {name: a}\ncircuitBreaker: {simpleCb: {sleepWindow: 0s, httpDetectionInterval: 1us}}", []string{
			"error FieldValueInvalid spec.circuitBreaker.simpleCb.sleepWindow", "error FieldValueInvalid spec.circuitBreaker.simpleCb.httpDetectionInterval"}},
		{"negative limits", breaker + "maxConnections: -1, httpConsecutiveErrors: -1}}", []string{
			"error FieldValueInvalid spec.circuitBreaker.simpleCb.maxConnections", "error FieldValueInvalid spec.circuitBreaker.simpleCb.httpConsecutiveErrors"}},
		{"ejection of 101 percent", breaker + "httpMaxEjectionPercent: 101}}", []string{"error FieldValueInvalid spec.circuitBreaker.simpleCb.httpMaxEjectionPercent"}},
		{"negative retries", breaker + "httpMaxRetries: -1}}", []string{"warning NotHonoured spec.circuitBreaker.simpleCb.httpMaxRetries"}},
	})
}
