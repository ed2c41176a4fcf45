package schema_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/schema"
)

func TestProductInWords(t *testing.T) {
	for _, tc := range []struct {
		product schema.Product
		want    string
	}{
		{schema.Product{{256, "hosts"}, {256, "ports"}, {4000, "endpoints"}}, "256 hosts × 256 ports × 4,000 endpoints = 262,144,000 parts"},
		{schema.Product{{1 << 31, "a"}, {1 << 31, "b"}}, "2,147,483,648 a × 2,147,483,648 b = more than 1,099,511,627,776 parts"},
		{schema.Product{{7, "a"}, {0, "b"}}, "7 a × 0 b = 0 parts"},
	} {
		if got := tc.product.String(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -12345: "-12,345", 1234567: "1,234,567"} {
		if got := schema.Thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// TestProductDoesNotOverflow: a product is exact up to the bound, and never falls
// below it once it is above.
func TestProductDoesNotOverflow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lengths := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 0, 8).Draw(rt, "lengths")
		exact, product := big.NewInt(1), schema.Product{}
		for _, n := range lengths {
			exact.Mul(exact, big.NewInt(int64(n)))
			product = append(product, schema.Factor{Length: n, Of: "items"})
		}
		got := product.Parts()
		if bound := big.NewInt(1 << 40); exact.Cmp(bound) >= 0 {
			if big.NewInt(int64(got)).Cmp(bound) < 0 {
				rt.Errorf("%v come to %d, which is too few", lengths, got)
			}
		} else if exact.Int64() != int64(got) {
			rt.Errorf("%v come to %d, want %d", lengths, got, exact)
		}
	})
}
