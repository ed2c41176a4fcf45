// Package yardstick provides references for the API server's performance: etcd itself
// over gRPC, and a minimal HTTP handler over etcd. One load generator drives all of them.
// The benchmark in this package compares the server with them in interleaved pairs,
// because figures from different minutes say more about the machine than about the
// programs.
//
//	program.go  the yardsticks as separate processes
//	thin.go     the thin handler
//	raw.go      etcd over gRPC
//	load.go     clients that run for a while, and their rate
//	conn.go     a cheap HTTP client
//	pairs.go    alternating measurements of the server and a yardstick
package yardstick

import (
	"fmt"
	"strings"
)

// ruleBytes is the length of each object.
const ruleBytes = 650

// Rule returns a RouteRule in JSON of exactly 650 bytes, as a client sends it. The weight
// of its first route is n modulo 100, so the next n gives a different object.
func Rule(namespace, name string, n int) []byte {
	const text = `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":%q,"namespace":%q,"annotations":{"note":"%s"}},` +
		`"spec":{"destination":{"name":"reviews"},"precedence":2,"match":{"request":{"headers":{"cookie":{"regex":"^(.*?;)?(user=jason)(;.*)?$"},"uri":{"prefix":"/reviews/"}}}},` +
		`"route":[{"labels":{"version":"v1"},"weight":%d},{"labels":{"version":"v2"},"weight":%d}],"httpReqTimeout":{"simpleTimeout":{"timeout":"15s"}},"httpReqRetries":{"simpleRetry":{"attempts":3,"perTryTimeout":"2s"}}}}`
	weight := n % 100
	bare := fmt.Sprintf(text, name, namespace, "", weight, 100-weight)
	return fmt.Appendf(nil, text, name, namespace, strings.Repeat("x", max(0, ruleBytes-len(bare))), weight, 100-weight)
}
