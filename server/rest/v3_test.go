package rest

import "testing"

// TestHostOf checks that an address has the same form over polls as over streams.
func TestHostOf(t *testing.T) {
	for address, want := range map[string]string{"10.0.0.1:80": "10.0.0.1", "[::1]:80": "::1", "": "", "@": ""} {
		if got := hostOf(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
