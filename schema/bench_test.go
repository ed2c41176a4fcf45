package schema

import (
	"fmt"
	"strings"
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

// The typed spec is decoded once for each change, in every replica.
func BenchmarkSpec(b *testing.B) {
	files := []string{"virtual-service-reviews-test-v2", "virtual-service-ratings-test-delay", "destination-rule-reviews"}
	for _, name := range files {
		o, list := Decode(readFile(b, "../examples/bookinfo-networking/"+name+".yaml"), Options{})
		if o == nil {
			b.Fatal(list)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := o.Kind.spec.decode(o.spec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHostile is the short way given texts of 1 MiB that it should refuse
// soon: no more than 100 ms and 64 MB are for any of them.
func BenchmarkHostile(b *testing.B) {
	const size = 1 << 20
	fill := func(part string) string { return strings.Repeat(part, size/len(part)) }
	var reversed strings.Builder
	for i := size / 16; i > 0; i-- {
		fmt.Fprintf(&reversed, `"k%08d":1,`, i)
	}
	for name, inner := range map[string]string{
		"numbers":   `[` + fill("1,") + `1]`,
		"maps":      `[` + fill("{},") + `{}]`,
		"floats":    `[` + fill("1e-300,") + `1]`,
		"escapes":   `"` + fill(`\u0061`) + `"`,
		"escaped":   `[` + fill(`"\u0061",`) + `1]`,
		"same name": `{` + fill(`"a":1,`) + `"a":1}`,
		"reversed":  `{` + reversed.String() + `"a":1}`,
		"nested":    fill(`[`),
		"digits":    fill(`1`),
		"quoted":    `"` + fill(`a`) + `"`,
	} {
		for _, at := range []string{`"metadata":{"name":"a"},"spec":{"route":%s}`, `"spec":{},"metadata":{"name":"a","annotations":{"a":%s}}`, `"metadata":{"name":"a"},"spec":{},"status":%s`} {
			text := []byte(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule",` + fmt.Sprintf(at, inner) + `}`)
			b.Run(name+"/"+at[1:5], func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					decodeWritten(text, Options{})
				}
			})
		}
	}
}
