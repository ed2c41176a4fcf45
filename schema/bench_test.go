package schema

import (
	"testing"
)

// benchRule is a RouteRule of 600 bytes with most of what rules have.
const benchRule = `apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata:
  name: ratings-test-delay
  namespace: default
  labels: {team: books}
spec:
  destination:
    name: ratings
  precedence: 2
  match:
    source: {name: reviews, labels: {version: v2}}
    request:
      headers:
        cookie:
          regex: "^(.*?;)?(user=jason)(;.*)?$"
        uri: {prefix: /ratings}
  route:
  - labels: {version: v1}
    weight: 90
  - labels: {version: v2}
    weight: 10
  httpReqTimeout:
    simpleTimeout: {timeout: 10s}
  httpFault:
    delay:
      percent: 50
      fixedDelay: 7s
`

func BenchmarkDecode(b *testing.B) {
	o, list := Decode([]byte(benchRule), Options{})
	if o == nil {
		b.Fatal(list)
	}
	for name, text := range map[string][]byte{"yaml": []byte(benchRule), "json": o.JSON()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if o, list := Decode(text, Options{}); o == nil {
					b.Fatal(list)
				}
			}
		})
	}
	byHand, err := o.WithMeta(o.Meta)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("validate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if list := Validate(byHand); list != nil {
				b.Fatal(list)
			}
		}
	})
}
