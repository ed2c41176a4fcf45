// Package yardstick is what the API server is measured against: etcd itself, asked
// over gRPC, and the thinnest HTTP handler over etcd that one can write. One load
// generator drives all of them. The benchmark beside it holds the server against
// them in interleaved pairs, because figures of different minutes say more about
// the machine than about the programs.
//
//	program.go  the yardsticks as processes of their own
//	thin.go     the thin handler
//	raw.go      etcd over gRPC
//	load.go     clients that do something for a while, and how often they did
//	conn.go     an HTTP client that costs little beside what it asks
//	pairs.go    ours and theirs, one after the other, again and again
package yardstick

import (
	"fmt"
	"strings"
)

// ruleBytes is the length of each object.
const ruleBytes = 650

// Rule is a RouteRule in JSON of exactly 650 bytes, as a client sends it. The weight
// of its first route is n modulo 100, so that the next n makes another one.
func Rule(namespace, name string, n int) []byte {
	const text = `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":%q,"namespace":%q,"annotations":{"note":"%s"}},` +
		`"spec":{"destination":{"name":"reviews"},"precedence":2,"match":{"request":{"headers":{"cookie":{"regex":"^(.*?;)?(user=jason)(;.*)?$"},"uri":{"prefix":"/reviews/"}}}},` +
		`"route":[{"labels":{"version":"v1"},"weight":%d},{"labels":{"version":"v2"},"weight":%d}],"httpReqTimeout":{"simpleTimeout":{"timeout":"15s"}},"httpReqRetries":{"simpleRetry":{"attempts":3,"perTryTimeout":"2s"}}}}`
	weight := n % 100
	bare := fmt.Sprintf(text, name, namespace, "", weight, 100-weight)
	return fmt.Appendf(nil, text, name, namespace, strings.Repeat("x", max(0, ruleBytes-len(bare))), weight, 100-weight)
}
