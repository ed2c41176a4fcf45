package envoy_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy"
)

func TestClusterName(t *testing.T) {
	fits := strings.Repeat("a", 189)
	for full, want := range map[string]string{
		"out.a|http": "out.a|http",
		fits:         fits,
		fits + "a":   fits[:149] + "f077c7d36a72f6ecab2df866a57023199c6138a9",
	} {
		if got := envoy.ClusterName(full); got != want {
			t.Errorf("%d bytes: got %s, want %s", len(full), got, want)
		}
	}
}
